-- Reads a version, also of a deleted definition.
SELECT id, workspace_id, definition_id, number, body, params_schema, execution_timeout_ms, created_at
FROM workflow_definition_version WHERE id = ?2 AND workspace_id = ?1
