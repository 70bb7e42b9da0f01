-- Enqueues with EXPLAIN ANALYZE.
EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON)
SELECT leasehold.leasehold_enqueue(workspace_id => $1, definition_id => $2, params => '1') AS id
