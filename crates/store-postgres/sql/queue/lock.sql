-- Locks the queue $1, waits for a running claim of it, and blocks new ones. The row first: claims must not wait while this waits for the row.
WITH changed AS MATERIALIZED (
    SELECT q.id FROM {schema}.queue q WHERE q.id = $1 FOR NO KEY UPDATE
)
SELECT pg_advisory_xact_lock(730834, c.id) FROM changed c
