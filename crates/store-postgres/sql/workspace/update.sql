-- Updates plan, overrides (each if the argument before it is true) or pause of a workspace. A trigger updates its turn row.
UPDATE {schema}.workspace
SET plan = coalesce($3, plan),
    limit_override = CASE WHEN $4 THEN $5 ELSE limit_override END,
    paused = coalesce($6, paused),
    max_pending_override = CASE WHEN $7 THEN $8 ELSE max_pending_override END,
    max_open_bytes_override = CASE WHEN $9 THEN $10 ELSE max_open_bytes_override END,
    updated_at = coalesce($1::timestamptz, statement_timestamp())
WHERE id = $2 AND deleted_at IS NULL
RETURNING id, name, plan, limit_override, max_pending_override, max_open_bytes_override, paused, created_at,
    deleted_at, (SELECT {schema}.leasehold_notify()) AS notified
