-- Waits for running claims of the queues $1, ordered by id, and blocks new ones. A claim may take longer than other locks of the transaction may.
WITH limits AS MATERIALIZED (
    SELECT current_setting('lock_timeout') AS before, set_config('lock_timeout', '2s', true) AS during
), locked AS MATERIALIZED (
    SELECT pg_advisory_xact_lock(730834, q.id) FROM limits CROSS JOIN unnest($1::integer[]) AS q (id)
)
SELECT set_config('lock_timeout', l.before, true) FROM limits l CROSS JOIN (SELECT count(*) FROM locked) AS done
