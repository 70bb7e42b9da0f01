-- Sets the plan, without an override.
UPDATE leasehold.workspace SET plan = $2, limit_override = NULL WHERE id = $1
