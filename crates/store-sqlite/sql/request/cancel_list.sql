-- Lists cancel requests of DISPATCHED requests that the engine has not acknowledged, oldest first. The caller stops reading at its limit.
SELECT id, workspace_id, execution_id, cancel_force
FROM workflow_execution_queue INDEXED BY request_cancel_untold
WHERE status = 'DISPATCHED' AND cancel_requested_at IS NOT NULL AND cancel_told_at IS NULL
ORDER BY cancel_requested_at, id
