-- Creates the workspaces number $1 to $2, with the limit $3, paused or not, each with one published definition.
WITH number AS (
    SELECT n FROM generate_series($1::bigint, $2::bigint) AS n
), filled AS (
    INSERT INTO leasehold.workspace (id, name, plan, limit_override, paused, created_at, updated_at)
    SELECT md5('workspace' || n)::uuid, 'workspace ' || n, 'FREE', $3::integer, $4::boolean, now(), now() FROM number
), defined AS (
    INSERT INTO leasehold.workflow_definition (id, workspace_id, name, current_version_id, versions, created_at)
    SELECT md5('definition' || n)::uuid, md5('workspace' || n)::uuid, 'order', md5('version' || n)::uuid, 1, now()
    FROM number
)
INSERT INTO leasehold.workflow_definition_version (id, workspace_id, definition_id, number, body, created_at)
SELECT md5('version' || n)::uuid, md5('workspace' || n)::uuid, md5('definition' || n)::uuid, 1,
    '{"binding": {"workflow_type": "order", "task_queue": "orders"}}', now()
FROM number
