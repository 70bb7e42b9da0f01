-- Creates two queues, and $1 ended jobs of which each thousandth is in the second queue; every third was scheduled, every fiftieth failed.
WITH named AS (
    INSERT INTO leasehold.queue (name) VALUES ('large'), ('small') RETURNING id, name
), filled AS (
    INSERT INTO leasehold.job (queue_id, kind, payload, run_at)
    SELECT (SELECT q.id FROM named q WHERE q.name = CASE WHEN n % 1000 = 7 THEN 'small' ELSE 'large' END), 'mail', '{}',
        CASE WHEN n % 3 = 0 THEN now() END
    FROM generate_series(1, $1::bigint) AS n
    RETURNING id
)
INSERT INTO leasehold.job_end (id, finished_at, token, attempts, status)
SELECT f.id, now(), 1, 1, CASE WHEN f.id % 50 = 9 THEN 'failed' ELSE 'completed' END FROM filled f
