-- Inserts a workspace unless its name exists; a trigger inserts its turn row.
INSERT INTO workspace (id, name, plan, limit_override, created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?5)
ON CONFLICT (name) WHERE deleted_at IS NULL DO NOTHING
RETURNING id, name, plan, limit_override, max_pending_override, max_open_bytes_override, paused, created_at,
    deleted_at
