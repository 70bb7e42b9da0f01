-- Has an execution RUNNING again, so that the engine is asked about it; refused by workspace_limit where no slot is free.
UPDATE workflow_execution SET status = 'RUNNING', finished_at = NULL, error = NULL WHERE id = ?1
