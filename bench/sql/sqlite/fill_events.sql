-- Appends the enqueue event of every inserted request.
INSERT INTO request_event (request_id, workspace_id, to_status, at, by_whom)
SELECT id, workspace_id, 'PENDING', created_at, 'fill' FROM workflow_execution_queue ORDER BY id
