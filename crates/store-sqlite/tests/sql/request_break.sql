-- Violates a constraint of a row without changing its status.
UPDATE workflow_execution_queue SET claimed_by = 'dispatcher' WHERE id = ?1
