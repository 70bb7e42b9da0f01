-- Lists the first executions with a node whose job lost its last lease.
SELECT DISTINCT execution_id FROM node_spent ORDER BY execution_id LIMIT ?1
