-- Those of the executions in the JSON array ?1 that are RUNNING.
SELECT id, workspace_id, request_id, definition_id, version_id, status, admission, started_at, finished_at, error
FROM workflow_execution
WHERE id IN (SELECT unhex(value) FROM json_each(?1)) AND finished_at IS NULL
