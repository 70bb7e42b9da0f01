-- Those of the executions $1 that are RUNNING.
SELECT id, workspace_id, request_id, definition_id, version_id, status, admission, started_at, finished_at, error
FROM workflow_execution WHERE id = ANY ($1) AND finished_at IS NULL
