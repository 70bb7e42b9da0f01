-- Resets the statement counters.
SELECT pg_stat_statements_reset()
