-- Extends a lock that the token still holds.
UPDATE shedlock SET lock_until = ?5
WHERE name = ?1 AND locked_by = ?2 AND fencing_token = ?3 AND lock_until > ?4
