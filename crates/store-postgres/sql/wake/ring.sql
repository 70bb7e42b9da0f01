-- Wakes whoever waits for $1.
SELECT pg_notify('leasehold', $1)
