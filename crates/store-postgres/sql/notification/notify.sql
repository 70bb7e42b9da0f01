-- Notifies the services that wait for $1.
SELECT pg_notify('leasehold', $1)
