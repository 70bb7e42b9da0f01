-- Reads when the oldest DISPATCHED request was dispatched.
SELECT min(dispatched_at) AS since FROM workflow_execution_queue INDEXED BY request_list_of_status WHERE status = 'DISPATCHED'
