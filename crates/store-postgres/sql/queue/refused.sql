-- Returns the first of the workspaces $2 that may not use the queue $1.
SELECT w.id FROM unnest($2::uuid[]) WITH ORDINALITY AS w (id, place)
WHERE NOT EXISTS (
    SELECT FROM {schema}.queue q WHERE q.name = $1 AND (q.owner_id = w.id OR q.shared_with_all
        OR EXISTS (SELECT FROM {schema}.queue_share s WHERE s.queue_id = q.id AND s.workspace_id = w.id))
)
ORDER BY w.place LIMIT 1
