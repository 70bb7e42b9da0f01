-- Restarts a kept execution: resets its start time and error.
UPDATE workflow_execution SET started_at = ?2, error = NULL WHERE id = ?1
