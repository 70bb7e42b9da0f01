-- Returns the status, the claim and its holder of requests, and whether they are cancelled.
SELECT id, status, claim_token, claimed_by, cancel_requested_at IS NOT NULL AS cancel_requested
FROM {schema}.workflow_execution_queue WHERE id = ANY ($1)
