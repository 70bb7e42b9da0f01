-- Returns the owners of the queues $1 and the workspaces with which they are shared, by name.
SELECT q.name, q.shared_with_all, o.name AS owner, ARRAY(
        SELECT w.name FROM {schema}.queue_share s JOIN {schema}.workspace w ON w.id = s.workspace_id
        WHERE s.queue_id = q.id AND w.deleted_at IS NULL ORDER BY w.name COLLATE "C"
    ) AS workspaces
FROM {schema}.queue q LEFT JOIN {schema}.workspace o ON o.id = q.owner_id
WHERE q.name = ANY ($1::text[]) ORDER BY q.name COLLATE "C"
