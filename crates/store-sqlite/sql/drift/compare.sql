-- Reads a workspace's turn row together with the actual values: slots by number and by count, open requests by status, whether its line is empty.
SELECT w.concurrency_limit AS true_limit, w.paused AS true_paused, w.deleted_at IS NOT NULL AS true_deleted,
    t.workspace_id IS NOT NULL AS has_turn, t.concurrency_limit, t.paused, t.deleted, t.has_room, t.waiting, t.claimed, t.dispatched,
    (SELECT count(*) FROM workflow_execution e INDEXED BY execution_running
        WHERE e.workspace_id = w.id AND e.status = 'RUNNING') AS running,
    1 + coalesce((SELECT slot FROM workflow_execution e INDEXED BY execution_slot_once
        WHERE e.workspace_id = w.id AND e.status = 'RUNNING' ORDER BY slot DESC LIMIT 1), -1) AS numbered,
    (SELECT count(*) FROM workflow_execution_queue q INDEXED BY request_list_of_workspace_status
        WHERE q.workspace_id = w.id AND q.status = 'CLAIMED') AS true_claimed,
    (SELECT count(*) FROM workflow_execution_queue q INDEXED BY request_list_of_workspace_status
        WHERE q.workspace_id = w.id AND q.status = 'DISPATCHED') AS true_dispatched,
    EXISTS (SELECT 1 FROM workflow_execution_queue q INDEXED BY request_line
        WHERE q.workspace_id = w.id AND q.due = 1 AND q.execution_id IS NULL) AS line
FROM workspace w LEFT JOIN workspace_turn t ON t.workspace_id = w.id
WHERE w.id = ?1
