-- Reads when the oldest CLAIMED request was claimed.
SELECT min(claimed_at) AS since FROM workflow_execution_queue INDEXED BY request_list_of_status WHERE status = 'CLAIMED'
