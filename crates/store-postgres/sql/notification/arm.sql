-- Acquires the waiter lock unless another process holds it. Then acquires the notify lock that leasehold_notify checks, which
-- waits for all transactions that created work without notifying. From then on such transactions notify.
WITH waiter_lock AS MATERIALIZED (
    SELECT pg_try_advisory_lock(7308332188) AS acquired
)
SELECT acquired, CASE WHEN acquired THEN pg_advisory_lock(7308332187) END FROM waiter_lock
