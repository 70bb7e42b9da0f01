-- Where requests are, with which token, and whether they are to be cancelled.
SELECT id, status, claim_token, cancel_requested_at IS NOT NULL AS wished FROM workflow_execution_queue WHERE id = ANY ($1)
