-- Charges the workspace $1 for $2 bytes of definitions and versions. Returns no row, and charges nothing, if they would exceed max_open_bytes. Locks
-- the count, so that concurrent publishes cannot exceed the limit together.
INSERT INTO {schema}.workspace_catalog (workspace_id, bytes) SELECT w.id, $2::bigint FROM {schema}.workspace w WHERE w.id = $1 AND w.max_open_bytes >= $2
ON CONFLICT (workspace_id) DO UPDATE SET bytes = workspace_catalog.bytes + excluded.bytes
WHERE workspace_catalog.bytes + excluded.bytes <= (SELECT w.max_open_bytes FROM {schema}.workspace w WHERE w.id = excluded.workspace_id)
RETURNING bytes
