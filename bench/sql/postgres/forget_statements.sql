-- Begins to count statements anew.
SELECT pg_stat_statements_reset()
