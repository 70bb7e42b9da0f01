-- Records how a node ended; a node without a job is inserted here.
INSERT INTO execution_node (execution_id, node, attempts, output, error, started_at, finished_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)
ON CONFLICT (execution_id, node) DO UPDATE
SET attempts = excluded.attempts, output = excluded.output, error = excluded.error, finished_at = excluded.finished_at
