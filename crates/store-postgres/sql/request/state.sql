-- Returns the status and claim token of requests, and whether they are cancelled.
SELECT id, status, claim_token, cancel_requested_at IS NOT NULL AS cancel_requested FROM workflow_execution_queue WHERE id = ANY ($1)
