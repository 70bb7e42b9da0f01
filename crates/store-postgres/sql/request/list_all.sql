-- Lists requests of all workspaces before $1, newest first, with filters.
SELECT {request/columns}
FROM {schema}.workflow_execution_queue
WHERE true
    AND id < coalesce($1, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
    AND ($2::text IS NULL OR status = $2) AND ($3::uuid IS NULL OR definition_id = $3)
    AND ($4::text IS NULL OR failure_reason = $4)
ORDER BY id DESC LIMIT $5
