-- Inserts $2 completed requests of workspace $3, numbered from $1, each with its execution and four events, forty days ago.
WITH filled AS (
    INSERT INTO leasehold.workflow_execution_queue (id, workspace_id, definition_id, version_id, status, due, attempt_count, run_at,
        created_at, claimed_at, dispatched_at, finished_at, execution_id, bytes, params)
    SELECT (lpad(to_hex(n), 12, '0') || substr(md5(n::text), 1, 20))::uuid, $3::uuid, $4::uuid, $5::uuid, 'COMPLETED', NULL, 1,
        a.at, a.at, a.at, a.at, a.at, (lpad(to_hex(n), 12, '0') || substr(md5('execution' || n), 1, 20))::uuid, 1100, '{"order": 7}'
    FROM generate_series($1::bigint, $1 + $2::bigint - 1) n, LATERAL (SELECT now() - interval '40 days' + n * interval '1 millisecond' AS at) a
    RETURNING id, execution_id, finished_at
), executions AS (
    INSERT INTO leasehold.workflow_execution (id, workspace_id, request_id, definition_id, version_id, status, admission, started_at, finished_at)
    SELECT execution_id, $3, id, $4, $5, 'COMPLETED', nextval('leasehold.admission_number'), finished_at, finished_at FROM filled
)
INSERT INTO leasehold.request_event (request_id, workspace_id, from_status, to_status, at, by_whom, bytes)
SELECT f.id, $3, s.from_status, s.to_status, f.finished_at, 'fill', s.bytes
FROM filled f CROSS JOIN (VALUES (1, NULL, 'PENDING', 1100), (2, 'PENDING', 'CLAIMED', NULL), (3, 'CLAIMED', 'DISPATCHED', NULL),
    (4, 'DISPATCHED', 'COMPLETED', -1100)) AS s (step, from_status, to_status, bytes)
ORDER BY f.id, s.step
