-- Inserts a started node.
INSERT INTO execution_node (execution_id, node, job_id, started_at) VALUES (?1, ?2, ?3, ?4)
