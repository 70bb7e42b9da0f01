-- Ends every RUNNING execution of a workspace in one statement.
UPDATE workflow_execution SET status = 'FAILED', finished_at = 1 WHERE status = 'RUNNING' AND workspace_id = ?1
