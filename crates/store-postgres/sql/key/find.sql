-- Returns the key with this hash, revoked or expired or not; none if its workspace is deleted.
SELECT {key/columns} FROM {schema}.api_key WHERE hash = $2
AND NOT EXISTS (SELECT 1 FROM {schema}.workspace WHERE workspace.id = api_key.workspace_id AND workspace.deleted_at IS NOT NULL)
