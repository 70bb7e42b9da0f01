-- Inserts a definition unless its name exists in the workspace.
INSERT INTO workflow_definition (id, workspace_id, name, created_at)
VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (workspace_id, name) WHERE deleted_at IS NULL DO NOTHING
RETURNING id, workspace_id, name, current_version_id, created_at
