-- Runs the prepared claim, for good, and says what each part of it touched.
EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON)
EXECUTE claim (NULL, {batch}, 'claimer', 15000000, '{executions}', NULL, NULL, NULL)
