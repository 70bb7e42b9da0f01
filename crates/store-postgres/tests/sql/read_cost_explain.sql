-- Runs the prepared statement with EXPLAIN ANALYZE.
EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE read_cost ({arguments})
