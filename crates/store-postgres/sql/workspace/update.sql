-- Updates plan, override ($5 if $4 is true) or pause of a workspace. A trigger updates its turn row.
UPDATE workspace
SET plan = coalesce($3, plan),
    limit_override = CASE WHEN $4 THEN $5 ELSE limit_override END,
    paused = coalesce($6, paused),
    updated_at = coalesce($1::timestamptz, statement_timestamp())
WHERE id = $2 AND deleted_at IS NULL
RETURNING id, name, plan, limit_override, paused, created_at, deleted_at, (SELECT leasehold_notify()) AS notified
