-- A page of a workspace's requests, newest first; parameters that are NULL let everything pass.
SELECT id, workspace_id, definition_id, version_id, status, priority, params, run_at, idempotency_key, execution_id,
    attempt_count, dispatch_failures, failure_reason, last_error, redrive_of, cancel_requested_at, claimed_by,
    lease_expires_at, trace_context, created_at, claimed_at, dispatched_at, finished_at
FROM workflow_execution_queue INDEXED BY request_list
WHERE workspace_id = ?1
    AND id < ?5
    AND (?2 IS NULL OR status = ?2)
    AND (?3 IS NULL OR definition_id = ?3)
    AND (?4 IS NULL OR failure_reason = ?4)
ORDER BY id DESC LIMIT ?6
