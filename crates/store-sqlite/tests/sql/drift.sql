-- Lists workspaces whose turn row does not match their requests and executions.
SELECT hex(t.workspace_id)
FROM workspace_turn t JOIN workspace w ON w.id = t.workspace_id
WHERE t.pending <> (SELECT count(*) FROM workflow_execution_queue q WHERE q.workspace_id = w.id AND q.status = 'PENDING')
    OR t.claimed <> (SELECT count(*) FROM workflow_execution_queue q WHERE q.workspace_id = w.id AND q.status = 'CLAIMED')
    OR t.dispatched <> (SELECT count(*) FROM workflow_execution_queue q WHERE q.workspace_id = w.id AND q.status = 'DISPATCHED')
    OR t.completed <> (SELECT count(*) FROM workflow_execution_queue q WHERE q.workspace_id = w.id AND q.status = 'COMPLETED')
    OR t.failed <> (SELECT count(*) FROM workflow_execution_queue q WHERE q.workspace_id = w.id AND q.status = 'FAILED')
    OR t.waiting <> (SELECT count(*) FROM workflow_execution_queue q
        WHERE q.workspace_id = w.id AND q.due = 1 AND q.execution_id IS NULL)
    OR t.concurrency_limit <> w.concurrency_limit
    OR t.paused <> w.paused
    OR t.deleted <> (w.deleted_at IS NOT NULL)
    OR t.has_room <> (t.concurrency_limit >
        (SELECT count(*) FROM workflow_execution e WHERE e.workspace_id = w.id AND e.status = 'RUNNING'))
    OR EXISTS (SELECT 1 FROM workflow_execution e WHERE e.workspace_id = w.id
        AND (e.status = 'RUNNING') <> (e.slot IS NOT NULL))
    OR (SELECT count(*) FROM workflow_execution e WHERE e.workspace_id = w.id AND e.status = 'RUNNING') <>
        (SELECT coalesce(max(e.slot), -1) + 1 FROM workflow_execution e WHERE e.workspace_id = w.id AND e.status = 'RUNNING')
