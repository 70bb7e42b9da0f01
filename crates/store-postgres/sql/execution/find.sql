-- One execution of any workspace.
SELECT id, workspace_id, request_id, definition_id, version_id, status, admission, started_at, finished_at, error
FROM workflow_execution WHERE id = $1
