-- Deletes the records of an execution's nodes whose job lost its last lease.
DELETE FROM node_spent WHERE execution_id = ?1
