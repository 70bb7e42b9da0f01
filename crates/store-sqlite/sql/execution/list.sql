-- Lists a page of a workspace's executions, last admitted first, with filters.
SELECT {execution/columns}
FROM workflow_execution INDEXED BY execution_list
WHERE workspace_id = ?1 AND admission < ?2 AND (?3 IS NULL OR status = ?3) AND (?4 IS NULL OR definition_id = ?4)
ORDER BY admission DESC LIMIT ?5
