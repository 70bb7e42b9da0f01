-- A page of the RUNNING executions of all workspaces, by workspace and admission.
SELECT id, workspace_id, request_id, definition_id, version_id, status, admission, started_at, finished_at, error
FROM workflow_execution INDEXED BY execution_running
WHERE status = 'RUNNING' AND (workspace_id, admission) > (?1, ?2)
ORDER BY workspace_id, admission LIMIT ?3
