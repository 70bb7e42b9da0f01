-- Enqueues $1 requests, numbered from $2, round robin in $4 workspaces from number $3 on: due in $5 seconds, after $6 rejected starts.
WITH filled AS (
    INSERT INTO leasehold.workflow_execution_queue (id, workspace_id, definition_id, version_id, due, run_at, created_at,
        attempt_count, dispatch_failures, last_error, params)
    -- Ids rise like those of the program, so that the indexes have the same shape.
    SELECT (lpad(to_hex(r), 12, '0') || substr(md5(r::text), 1, 20))::uuid, md5('workspace' || w)::uuid,
        md5('definition' || w)::uuid, md5('version' || w)::uuid, $5::bigint <= 0, now() + $5 * interval '1 second',
        now() + r * interval '1 microsecond', $6::integer, $6, CASE WHEN $6 > 0 THEN 'refused by the engine' END,
        '{"order": 12345, "customer": "abcdefgh", "lines": [1, 2, 3]}'
    FROM generate_series($2::bigint, $2 + $1::bigint - 1) AS r, LATERAL (SELECT $3::bigint + r % $4::bigint AS w) AS turn
    RETURNING id, workspace_id, created_at, due, rank
)
INSERT INTO leasehold.request_event (request_id, workspace_id, to_status, at, rank, line_at, by_whom)
SELECT id, workspace_id, 'PENDING', created_at, CASE WHEN due THEN rank END, CASE WHEN due THEN created_at END, 'fill'
FROM filled
