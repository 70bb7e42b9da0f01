-- What starting the graph of a RUNNING execution must know.
SELECT e.version_id, v.execution_timeout_ms
FROM workflow_execution e JOIN workflow_definition_version v ON v.id = e.version_id
WHERE e.id = ?1 AND e.status = 'RUNNING'
