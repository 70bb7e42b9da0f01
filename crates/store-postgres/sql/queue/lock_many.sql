-- Waits for running claims of the queues $1, ordered by id, and blocks new ones. From then on the transaction waits only shortly for other locks.
WITH limits AS MATERIALIZED (
    SELECT set_config('lock_timeout', '2s', true)
), locked AS MATERIALIZED (
    SELECT pg_advisory_xact_lock(730834, q.id) FROM limits CROSS JOIN unnest($1::integer[]) AS q (id)
)
SELECT set_config('lock_timeout', '30ms', true) FROM (SELECT count(*) FROM locked) AS done
