-- Reads the oldest request that kept its execution, and whether that execution is RUNNING.
SELECT q.id, q.workspace_id, q.definition_id, q.version_id, q.priority, q.params, q.attempt_count, q.dispatch_failures,
    q.cancel_requested_at IS NOT NULL AS cancel_requested, q.trace_context, q.created_at, q.claim_token, q.execution_id,
    q.run_at, q.execution_lost, q.crashes, q.crashes_alone,
    EXISTS (SELECT 1 FROM workflow_execution e WHERE e.id = q.execution_id AND e.status = 'RUNNING') AS runs
FROM workflow_execution_queue q INDEXED BY request_kept
WHERE q.due = 1 AND q.execution_id IS NOT NULL
ORDER BY q.created_at, q.id LIMIT 1
