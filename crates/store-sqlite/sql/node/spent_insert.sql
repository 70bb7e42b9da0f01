-- Records for a running graph that a node's job lost its last lease.
INSERT INTO node_spent (execution_id, node, attempts, error)
SELECT execution_id, ?2, ?3, ?4 FROM execution_graph WHERE execution_id = ?1 AND finished_at IS NULL
ON CONFLICT (execution_id, node) DO NOTHING
