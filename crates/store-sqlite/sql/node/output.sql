-- Reads a node's output.
SELECT output FROM execution_node WHERE execution_id = ?1 AND node = ?2 AND output IS NOT NULL
