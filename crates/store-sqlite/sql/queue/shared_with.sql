-- Lists the names of the workspaces with which the queue ?1 is shared.
SELECT w.name FROM queue_share s JOIN workspace w ON w.id = s.workspace_id
WHERE s.queue_id = ?1 AND w.deleted_at IS NULL
