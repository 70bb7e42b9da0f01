-- Locks the limit, waits for running claims, and blocks new ones. The row first: claims must not wait while this waits for the row.
WITH changed AS MATERIALIZED (
    SELECT l.one FROM {schema}.job_limit l FOR NO KEY UPDATE
)
SELECT pg_advisory_xact_lock(730833, 0) FROM changed
