-- Where requests are and with which token.
SELECT id, status, claim_token FROM workflow_execution_queue WHERE id = ANY ($1)
