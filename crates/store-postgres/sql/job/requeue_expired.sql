-- Requeues or fails up to $3 jobs whose lease has expired, and notifies waiting workers. $4: the offset of transaction numbers. Returns one row without a job if there is none.
WITH moment AS MATERIALIZED (
    SELECT coalesce($1::timestamptz, clock_timestamp()) AS now
), expired AS MATERIALIZED (
    SELECT x.id, x.token, x.queue, x.worker, x.status
    FROM moment m CROSS JOIN LATERAL {schema}.leasehold_job_expire(m.now, coalesce($2::timestamptz, '-infinity'), $3, $4) x
), notification AS MATERIALIZED (
    SELECT {schema}.leasehold_job_notify() AS notified WHERE EXISTS (SELECT FROM expired)
)
SELECT m.now, x.id, x.token, x.queue, x.worker, x.status, (SELECT w.notified FROM notification w) AS notified FROM moment m LEFT JOIN expired x ON true
