-- Waits for running claims of the queues $1, ordered by id, and blocks new ones.
SELECT pg_advisory_xact_lock(730834, q.id) FROM unnest($1::integer[]) AS q (id)
