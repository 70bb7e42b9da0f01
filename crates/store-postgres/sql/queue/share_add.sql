-- Shares the queues $2 with the workspace $1.
INSERT INTO {schema}.queue_share (queue_id, workspace_id)
SELECT q.id, $1 FROM {schema}.queue q WHERE q.name = ANY ($2::text[]) ORDER BY q.id ON CONFLICT DO NOTHING
