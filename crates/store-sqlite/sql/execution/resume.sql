-- Takes a kept execution up again.
UPDATE workflow_execution SET started_at = ?2, error = NULL WHERE id = ?1
