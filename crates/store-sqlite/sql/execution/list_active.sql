-- Lists a page of the RUNNING executions of all workspaces, by workspace and admission.
SELECT {execution/columns}
FROM workflow_execution INDEXED BY execution_running
WHERE status = 'RUNNING' AND (workspace_id, admission) > (?1, ?2)
ORDER BY workspace_id, admission LIMIT ?3
