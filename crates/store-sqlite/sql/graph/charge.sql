-- Charges ?2 bytes of the execution ?1 to its open request; a trigger adds them to the workspace.
UPDATE workflow_execution_queue SET execution_bytes = execution_bytes + ?2
WHERE id = (SELECT request_id FROM workflow_execution WHERE id = ?1) AND execution_id = ?1 AND finished_at IS NULL
