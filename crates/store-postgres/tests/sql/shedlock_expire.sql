-- Expires every lock.
UPDATE shedlock SET lock_until = timezone('utc', CURRENT_TIMESTAMP)
