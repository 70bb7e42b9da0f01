-- The graph was told of the nodes whose job lost its last lease, or has ended.
DELETE FROM node_spent WHERE execution_id = ?1
