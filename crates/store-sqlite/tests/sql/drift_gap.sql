-- Leaves a gap in the slot numbers.
UPDATE workflow_execution SET slot = slot + 7 WHERE id = ?1
