-- Writes down that a node that was begun is no longer wanted.
UPDATE execution_node SET attempts = ?3, finished_at = ?4 WHERE execution_id = ?1 AND node = ?2
