-- Runs the prepared claim with EXPLAIN ANALYZE.
EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON)
EXECUTE claim (NULL, {batch}, 'claimer', 15000000, '{executions}', NULL, NULL, NULL, {batch})
