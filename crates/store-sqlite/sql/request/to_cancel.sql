-- Reads what a cancellation needs of a request.
SELECT status, execution_id FROM workflow_execution_queue WHERE id = ?2 AND workspace_id = ?1
