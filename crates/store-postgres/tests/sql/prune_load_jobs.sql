-- Inserts $1 completed jobs of queue $2 that ended forty days ago.
WITH filled AS (
    INSERT INTO leasehold.job (created_at, run_at, queue_id, kind, payload)
    SELECT a.at, a.at, q.id, 'send', '{"to": 7}'
    FROM leasehold.queue q, generate_series(1, $1::bigint) n, LATERAL (SELECT now() - interval '40 days' + n * interval '1 millisecond' AS at) a
    WHERE q.name = $2
    RETURNING id, created_at
)
INSERT INTO leasehold.job_end (id, finished_at, token, attempts, status)
SELECT id, created_at, nextval('leasehold.job_token'), 1, 'completed' FROM filled
