-- The columns of an execution.
id, workspace_id, request_id, definition_id, version_id, status, admission, started_at, finished_at, error
