-- Stops sharing the queue $1 with workspaces other than $2. Deleted workspaces keep it for their running executions.
DELETE FROM {schema}.queue_share s USING {schema}.workspace w
WHERE s.queue_id = $1 AND s.workspace_id <> ALL ($2::uuid[]) AND w.id = s.workspace_id AND w.deleted_at IS NULL
