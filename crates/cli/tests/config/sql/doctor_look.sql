-- Whoever looks, and the first thing seen.
SELECT pg_backend_pid(), (SELECT count(*) FROM workspace)
