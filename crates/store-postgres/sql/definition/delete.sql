-- Marks a definition as deleted.
UPDATE {schema}.workflow_definition SET deleted_at = coalesce($1::timestamptz, statement_timestamp())
WHERE id = $3 AND workspace_id = $2 AND deleted_at IS NULL
RETURNING name
