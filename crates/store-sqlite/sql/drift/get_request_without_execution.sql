-- Reads a request that is CLAIMED or DISPATCHED without a RUNNING execution, and whether the execution exists at all.
SELECT q.workspace_id, q.definition_id, q.version_id, q.execution_id,
    EXISTS (SELECT 1 FROM workflow_execution e WHERE e.id = q.execution_id AND e.request_id = q.id) AS execution_exists
FROM workflow_execution_queue q
WHERE q.id = ?1 AND q.status IN ('CLAIMED', 'DISPATCHED') AND NOT EXISTS (
    SELECT 1 FROM workflow_execution e WHERE e.id = q.execution_id AND e.status = 'RUNNING')
