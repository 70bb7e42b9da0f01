-- Waits for the claims under way in the queues $1, in their order, and keeps others waiting.
SELECT pg_advisory_xact_lock(730834, q.id) FROM unnest($1::integer[]) AS q (id)
