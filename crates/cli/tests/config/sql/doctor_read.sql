-- Reads a table, which opens the snapshot; returns the backend pid.
SELECT pg_backend_pid(), (SELECT count(*) FROM workspace)
