-- Creates a definition in a workspace that is not deleted. Returns one row: whether the workspace exists, and the definition if created.
WITH owner AS (
    SELECT id FROM {schema}.workspace WHERE id = $3 AND deleted_at IS NULL FOR SHARE
), made AS (
    INSERT INTO {schema}.workflow_definition (id, workspace_id, name, created_at)
    SELECT $2, owner.id, $4, coalesce($1::timestamptz, statement_timestamp()) FROM owner
    ON CONFLICT (workspace_id, name) WHERE deleted_at IS NULL DO NOTHING
    RETURNING id, workspace_id, name, current_version_id, created_at
)
SELECT EXISTS (SELECT 1 FROM owner) AS owned,
    made.id, made.workspace_id, made.name, made.current_version_id, made.created_at
FROM (SELECT 1) one LEFT JOIN made ON true
