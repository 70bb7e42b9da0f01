-- Inserts a published version.
INSERT INTO workflow_definition_version (id, workspace_id, definition_id, number, body, params_schema, execution_timeout_ms, created_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
RETURNING id, workspace_id, definition_id, number, body, params_schema, execution_timeout_ms, created_at
