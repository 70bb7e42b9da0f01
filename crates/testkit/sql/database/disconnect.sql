-- Ends the connections that building a template left open: they would forbid its renaming and copying.
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1;
