-- Inserts a PENDING request; it joins the line at once if it is due.
INSERT INTO workflow_execution_queue (id, workspace_id, definition_id, version_id, priority, params, run_at, due,
    idempotency_key, dedupe_until, trace_context, created_at, bytes)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7 <= ?11, ?8, ?9, ?10, ?11, ?12)
