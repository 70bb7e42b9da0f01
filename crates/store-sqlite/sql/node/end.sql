-- Writes how a node ended; one that nobody could work on was never begun.
INSERT INTO execution_node (execution_id, node, attempts, output, error, started_at, finished_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)
ON CONFLICT (execution_id, node) DO UPDATE
SET attempts = excluded.attempts, output = excluded.output, error = excluded.error, finished_at = excluded.finished_at
