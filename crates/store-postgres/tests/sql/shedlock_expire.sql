-- Lets every lock run out.
UPDATE shedlock SET lock_until = timezone('utc', CURRENT_TIMESTAMP)
