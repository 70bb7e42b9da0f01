-- Another plan, no override.
UPDATE workspace SET plan = $2, limit_override = NULL WHERE id = $1
