-- Leaves a gap in the numbers of slots.
UPDATE workflow_execution SET slot = slot + 7 WHERE id = ?1
