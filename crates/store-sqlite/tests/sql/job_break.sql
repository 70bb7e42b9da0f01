-- Makes a job unreadable.
UPDATE job SET max_attempts = -1, created_at = 9223372036854775807 WHERE id = ?1
