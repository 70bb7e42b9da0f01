-- Lists the nodes of an execution whose job lost its last lease.
SELECT node, attempts, error FROM node_spent WHERE execution_id = ?1 ORDER BY node
