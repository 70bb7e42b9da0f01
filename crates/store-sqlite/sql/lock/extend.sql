-- Keeps a lock that is still held.
UPDATE shedlock SET lock_until = ?5
WHERE name = ?1 AND locked_by = ?2 AND fencing_token = ?3 AND lock_until > ?4
