-- Shares the queues of the workspace ?1 with itself, for its running executions once it is deleted.
INSERT INTO queue_share (queue_id, workspace_id) SELECT id, owner_id FROM queue WHERE owner_id = ?1 ON CONFLICT DO NOTHING
