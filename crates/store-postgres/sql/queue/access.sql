-- Returns the owners of the queues $2, and whether each is shared with the workspace $1.
SELECT q.name, q.owner_id, q.shared_with_all
    OR EXISTS (SELECT FROM {schema}.queue_share s WHERE s.queue_id = q.id AND s.workspace_id = $1) AS is_shared
FROM {schema}.queue q WHERE q.name = ANY ($2::text[])
