-- Inserts a new PENDING request like the failed one ?1.
INSERT INTO workflow_execution_queue (id, workspace_id, definition_id, version_id, priority, params, run_at, due,
    trace_context, redrive_of, live_redrive_of, created_at)
SELECT ?2, workspace_id, definition_id, version_id, priority, params, ?3, 1, trace_context, id, id, ?3
FROM workflow_execution_queue WHERE id = ?1
