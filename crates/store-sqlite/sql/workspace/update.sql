-- Updates plan, override (if ?3 is true) or pause of a workspace that is not deleted; a trigger updates its turn row.
UPDATE workspace
SET plan = coalesce(?2, plan),
    limit_override = CASE WHEN ?3 THEN ?4 ELSE limit_override END,
    paused = coalesce(?5, paused),
    updated_at = ?6
WHERE id = ?1 AND deleted_at IS NULL
RETURNING id, name, plan, limit_override, paused, created_at, deleted_at
