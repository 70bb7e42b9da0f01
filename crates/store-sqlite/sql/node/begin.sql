-- Writes down that a node was begun.
INSERT INTO execution_node (execution_id, node, job_id, started_at) VALUES (?1, ?2, ?3, ?4)
