-- Whether the token still holds the lock.
SELECT EXISTS (
    SELECT 1 FROM shedlock WHERE name = ?1 AND locked_by = ?2 AND fencing_token = ?3 AND lock_until > ?4)
