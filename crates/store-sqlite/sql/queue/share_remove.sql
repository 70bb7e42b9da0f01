-- Stops sharing the queue ?1. Deleted workspaces keep it for their running executions.
DELETE FROM queue_share
WHERE queue_id = ?1 AND (SELECT w.deleted_at FROM workspace w WHERE w.id = queue_share.workspace_id) IS NULL
