-- Gives the workspace of the last request in line three RUNNING executions, and after them $1 ended ones, each with its request.
WITH owner AS (
    SELECT workspace_id, definition_id, version_id FROM leasehold.workflow_execution_queue
    WHERE due ORDER BY rank DESC, created_at DESC, id DESC LIMIT 1
), filled AS (
    INSERT INTO leasehold.workflow_execution_queue (id, workspace_id, definition_id, version_id, due, run_at, created_at, execution_id)
    SELECT md5('filled' || n)::uuid, workspace_id, definition_id, version_id, false, now() + interval '1 day', now(),
        md5('execution' || n)::uuid
    FROM owner, generate_series(1, 3 + $1::bigint) AS n
    RETURNING id
)
INSERT INTO leasehold.workflow_execution
    (id, workspace_id, request_id, definition_id, version_id, status, admission, started_at, finished_at)
SELECT md5('execution' || n)::uuid, workspace_id, md5('filled' || n)::uuid, definition_id, version_id,
    CASE WHEN n <= 3 THEN 'RUNNING' ELSE 'COMPLETED' END, n, now(), CASE WHEN n > 3 THEN now() END
FROM owner, generate_series(1, 3 + $1::bigint) AS n
WHERE (SELECT count(*) FROM filled) > 0
