-- Finishes an execution; a trigger frees its slot.
UPDATE workflow_execution SET status = ?2, finished_at = ?3, error = ?4 WHERE id = ?1
