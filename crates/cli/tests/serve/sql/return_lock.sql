-- Releases the dispatcher's lock that steal_lock.sql has taken.
UPDATE shedlock
SET lock_until = timezone('utc', CURRENT_TIMESTAMP)
WHERE name = 'processExecutionQueue' AND locked_by = 'a thief'
