-- Creates a workspace; returns no row if its name is taken.
INSERT INTO {schema}.workspace (id, name, plan, limit_override, created_at, updated_at)
SELECT $2, $3, $4, $5, clock.now, clock.now
FROM (SELECT coalesce($1::timestamptz, statement_timestamp()) AS now) clock
ON CONFLICT (name) WHERE deleted_at IS NULL DO NOTHING
RETURNING id, name, plan, limit_override, max_pending_override, max_open_bytes_override, paused, created_at,
    deleted_at
