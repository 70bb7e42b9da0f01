-- Terminates the connections that the template's build left open: PostgreSQL renames and copies only databases without connections.
SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = $1;
