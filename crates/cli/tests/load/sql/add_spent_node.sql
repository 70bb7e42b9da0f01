-- Records that the node of the newest execution without a worker lost its last lease.
INSERT INTO node_spent (execution_id, attempts, node, error)
SELECT e.id, 1, 0, 'lease lost' FROM workflow_execution e JOIN job j ON j.execution_id = e.id JOIN queue q ON q.id = j.queue_id
WHERE e.workspace_id = '{workspace}' AND e.status = 'RUNNING' AND q.name = 'unserved' ORDER BY e.started_at DESC LIMIT 1
ON CONFLICT DO NOTHING
