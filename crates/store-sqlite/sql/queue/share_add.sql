-- Shares the queue ?1 with the workspace ?2.
INSERT INTO queue_share (queue_id, workspace_id) VALUES (?1, ?2) ON CONFLICT DO NOTHING
