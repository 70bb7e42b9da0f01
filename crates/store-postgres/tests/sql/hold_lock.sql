-- Keeps the locks of the open transaction for longer than an enqueue waits at once.
SELECT pg_sleep(0.3)
