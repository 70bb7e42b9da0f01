-- Releases a lock that the token still holds; it becomes free ?5 microseconds after it was acquired at the earliest.
UPDATE shedlock SET lock_until = max(?4, locked_at + ?5)
WHERE name = ?1 AND locked_by = ?2 AND fencing_token = ?3 AND lock_until > ?4
