-- Releases a lock as ShedLock does.
UPDATE leasehold.shedlock SET lock_until = timezone('utc', CURRENT_TIMESTAMP) WHERE name = $1 AND locked_by = $2
