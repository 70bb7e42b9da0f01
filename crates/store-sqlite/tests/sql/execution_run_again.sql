-- Sets every ended execution of a workspace to RUNNING.
UPDATE workflow_execution SET status = 'RUNNING', finished_at = NULL WHERE status <> 'RUNNING' AND workspace_id = ?1
