-- Inserts a new PENDING request as a copy of the failed request ?1.
INSERT INTO workflow_execution_queue (id, run_at, due, redrive_of, live_redrive_of, created_at, {request/given})
SELECT ?2, ?3, 1, id, id, ?3, {request/given}
FROM workflow_execution_queue WHERE id = ?1
