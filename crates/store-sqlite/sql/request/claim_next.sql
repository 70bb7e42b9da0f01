-- Reads the first request in a workspace's line, and whether its definition and version exist.
SELECT q.id, q.workspace_id, q.definition_id, q.version_id, q.priority, q.params, q.attempt_count, q.dispatch_failures,
    q.cancel_requested_at IS NOT NULL AS cancel_requested, q.trace_context, q.created_at, q.claim_token, q.execution_id,
    q.run_at, q.execution_lost, q.crashes, q.crashes_alone,
    EXISTS (SELECT 1 FROM workflow_definition d
        WHERE d.id = q.definition_id AND d.workspace_id = q.workspace_id AND d.deleted_at IS NULL) AS definition_found,
    EXISTS (SELECT 1 FROM workflow_definition_version v
        WHERE v.id = q.version_id AND v.definition_id = q.definition_id) AS version_found
FROM workflow_execution_queue q INDEXED BY request_line
WHERE q.workspace_id = ?1 AND q.due = 1 AND q.execution_id IS NULL
ORDER BY q.priority DESC, q.created_at, q.id LIMIT 1
