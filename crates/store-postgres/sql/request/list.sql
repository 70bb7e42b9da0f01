-- Lists requests of a workspace before $2, newest first, with filters.
SELECT {request/columns}
FROM {schema}.workflow_execution_queue
WHERE workspace_id = $1
    AND id < coalesce($2, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
    AND ($3::text IS NULL OR status = $3) AND ($4::uuid IS NULL OR definition_id = $4)
    AND ($5::text IS NULL OR failure_reason = $5)
ORDER BY id DESC LIMIT $6
