-- Adds the next version of a definition and makes it current.
WITH next AS (
    UPDATE {schema}.workflow_definition SET versions = versions + 1, current_version_id = $2
    WHERE id = $4 AND workspace_id = $3 AND deleted_at IS NULL
        AND EXISTS (SELECT FROM {schema}.workspace w WHERE w.id = $3 AND w.deleted_at IS NULL)
    RETURNING id, workspace_id, versions
)
INSERT INTO {schema}.workflow_definition_version (id, workspace_id, definition_id, number, body, params_schema, execution_timeout_ms, created_at)
SELECT $2, workspace_id, id, versions, $5, $6, $7, coalesce($1::timestamptz, statement_timestamp()) FROM next
RETURNING id, workspace_id, definition_id, number, body, params_schema, execution_timeout_ms, created_at
