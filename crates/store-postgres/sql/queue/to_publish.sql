-- Returns whether the definition $2 of the workspace $1 can get a version, and how many queues the workspace owns.
SELECT EXISTS (
        SELECT FROM {schema}.workflow_definition d JOIN {schema}.workspace w ON w.id = d.workspace_id
        WHERE d.id = $2 AND d.workspace_id = $1 AND d.deleted_at IS NULL AND w.deleted_at IS NULL
    ) AS is_open, (SELECT count(*) FROM {schema}.queue q WHERE q.owner_id = $1) AS owned
