-- Whether the queue ?1 is shared with the workspace ?2 by name.
SELECT EXISTS (SELECT 1 FROM queue_share WHERE queue_id = ?1 AND workspace_id = ?2)
