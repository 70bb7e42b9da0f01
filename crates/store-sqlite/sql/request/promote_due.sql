-- Promotes due requests into their workspaces' lines, longest due first.
UPDATE workflow_execution_queue SET due = 1
WHERE id IN (
    SELECT id FROM workflow_execution_queue INDEXED BY request_not_due
    WHERE due = 0 AND run_at <= ?1 ORDER BY run_at LIMIT ?2)
