-- Breaks an invariant of a row without moving it.
UPDATE workflow_execution_queue SET claimed_by = 'someone' WHERE id = ?1
