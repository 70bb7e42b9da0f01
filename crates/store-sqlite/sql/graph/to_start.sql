-- Reads the timeout of an execution's version; no row unless the execution is RUNNING with version ?2.
SELECT v.execution_timeout_ms
FROM workflow_execution e JOIN workflow_definition_version v ON v.id = e.version_id
WHERE e.id = ?1 AND e.version_id = ?2 AND e.status = 'RUNNING'
