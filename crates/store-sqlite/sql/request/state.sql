-- Reads the claim's state before its owner changes it.
SELECT id, workspace_id, status, claimed_by, claim_token, execution_id, dispatch_failures,
    cancel_requested_at IS NOT NULL AS cancel_requested
FROM workflow_execution_queue WHERE id = ?1
