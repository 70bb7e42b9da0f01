-- Inserts a request that is CLAIMED from the beginning, like the request $1.
INSERT INTO leasehold.workflow_execution_queue
    (id, workspace_id, definition_id, version_id, status, run_at, created_at, claimed_at, claimed_by, lease_expires_at, execution_id)
SELECT gen_random_uuid(), workspace_id, definition_id, version_id, 'CLAIMED', now(), now(), now(), 'x', now(), gen_random_uuid()
FROM leasehold.workflow_execution_queue WHERE id = $1
