-- Inserts a RUNNING execution, which takes a slot; workspace_limit rejects it if no slot is free.
INSERT INTO workflow_execution (id, workspace_id, request_id, definition_id, version_id, status, admission, started_at)
VALUES (?1, ?2, ?3, ?4, ?5, 'RUNNING', ?6, ?7)
