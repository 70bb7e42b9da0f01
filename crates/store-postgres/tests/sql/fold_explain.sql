-- Runs a fold with EXPLAIN ANALYZE.
EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) SELECT leasehold.leasehold_fold()
