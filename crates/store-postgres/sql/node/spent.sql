-- Deletes and returns the nodes of execution $1 whose job lost its last lease.
DELETE FROM {schema}.node_spent WHERE execution_id = $1 RETURNING node, attempts, error
