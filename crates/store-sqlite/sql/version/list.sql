-- Lists a page of a definition's versions, by number.
SELECT id, workspace_id, definition_id, number, body, params_schema, execution_timeout_ms, created_at
FROM workflow_definition_version WHERE definition_id = ?2 AND number > ?3 AND workspace_id = ?1
ORDER BY number LIMIT ?4
