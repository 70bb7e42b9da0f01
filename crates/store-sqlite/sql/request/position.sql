-- Counts the due requests of a workspace that a claim takes before this one, up to ?4; no row if the request is not in line. Due
-- requests that are not promoted yet count too, as far as the next claim promotes them.
SELECT min(?4, (
        SELECT count(*) FROM (
            SELECT q.priority, q.created_at, q.id FROM workflow_execution_queue q INDEXED BY request_line
            WHERE q.workspace_id = ?1 AND q.due = 1 AND q.execution_id IS NULL
            ORDER BY q.priority DESC, q.created_at, q.id LIMIT ?4
        ) q
        WHERE (-q.priority, q.created_at, q.id) < (-own.priority, own.created_at, own.id)
    ) + (
        SELECT count(*) FROM (
            SELECT q.workspace_id, q.execution_id, q.priority, q.created_at, q.id
            FROM workflow_execution_queue q INDEXED BY request_not_due
            WHERE q.due = 0 AND q.run_at <= ?3 ORDER BY q.run_at LIMIT ?5
        ) q
        WHERE q.workspace_id = ?1 AND q.execution_id IS NULL
            AND (-q.priority, q.created_at, q.id) < (-own.priority, own.created_at, own.id)
    )) AS position
FROM workflow_execution_queue own
WHERE own.id = ?2 AND own.workspace_id = ?1 AND own.execution_id IS NULL
    AND (own.due = 1 OR (own.due = 0 AND own.run_at <= ?3))
