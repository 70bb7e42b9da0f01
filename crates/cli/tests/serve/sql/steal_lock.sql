-- Takes the dispatcher's lock from its holder until it is returned, as a Java ShedLock with a wrong clock would.
UPDATE shedlock
SET locked_by = 'a thief', locked_at = timezone('utc', CURRENT_TIMESTAMP), lock_until = timezone('utc', CURRENT_TIMESTAMP) + interval '1 hour'
WHERE name = 'processExecutionQueue'
