-- Runs the prepared statement and says what each part of it touched.
EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE read_cost ({arguments})
