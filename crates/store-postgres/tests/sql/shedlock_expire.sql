-- Expires every lock.
UPDATE leasehold.shedlock SET lock_until = timezone('utc', CURRENT_TIMESTAMP)
