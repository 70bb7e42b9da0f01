-- Sets an execution to RUNNING again, so that the engine is asked about it; workspace_limit rejects it if no slot is free.
UPDATE workflow_execution SET status = 'RUNNING', finished_at = NULL, error = NULL WHERE id = ?1
