-- Keeps the transaction open for so many seconds.
SELECT pg_sleep($1)
