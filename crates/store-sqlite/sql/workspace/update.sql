-- Updates plan, overrides (each if the argument before it is true) or pause of a workspace that is not deleted; a trigger updates its turn row.
UPDATE workspace
SET plan = coalesce(?2, plan),
    limit_override = CASE WHEN ?3 THEN ?4 ELSE limit_override END,
    paused = coalesce(?5, paused),
    updated_at = ?6,
    max_pending_override = CASE WHEN ?7 THEN ?8 ELSE max_pending_override END,
    max_open_bytes_override = CASE WHEN ?9 THEN ?10 ELSE max_open_bytes_override END
WHERE id = ?1 AND deleted_at IS NULL
RETURNING id, name, plan, limit_override, max_pending_override, max_open_bytes_override, paused, created_at,
    deleted_at
