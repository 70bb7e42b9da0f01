-- Acquires the waiter lock of the workers unless another process holds it. Then acquires the notify lock that leasehold_job_notify checks, which
-- waits for all transactions that enqueued jobs without notifying. From then on such transactions notify.
WITH waiter_lock AS MATERIALIZED (
    SELECT pg_try_advisory_lock(7308332190) AS acquired
)
SELECT acquired, CASE WHEN acquired THEN pg_advisory_lock(7308332189) END FROM waiter_lock
