-- Lists the first nodes whose job lost its last lease.
SELECT execution_id, node, attempts, error FROM node_spent ORDER BY rowid LIMIT ?1
