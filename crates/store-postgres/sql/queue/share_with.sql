-- Shares the queue $1 with the workspaces $2.
INSERT INTO {schema}.queue_share (queue_id, workspace_id)
SELECT $1, w.id FROM unnest($2::uuid[]) AS w (id) ORDER BY w.id ON CONFLICT DO NOTHING
