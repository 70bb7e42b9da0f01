-- Lists a page of a workspace's RUNNING executions, last admitted first; ?3 is 'RUNNING'.
SELECT {execution/columns}
FROM workflow_execution INDEXED BY execution_running
WHERE workspace_id = ?1 AND admission < ?2 AND status = 'RUNNING' AND status = ?3 AND (?4 IS NULL OR definition_id = ?4)
ORDER BY admission DESC LIMIT ?5
