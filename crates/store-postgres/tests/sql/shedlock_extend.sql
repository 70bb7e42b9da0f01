-- Extends a lock as ShedLock does.
UPDATE leasehold.shedlock SET lock_until = timezone('utc', CURRENT_TIMESTAMP) + interval '90 seconds'
WHERE name = $1 AND locked_by = $2 AND lock_until > timezone('utc', CURRENT_TIMESTAMP)
