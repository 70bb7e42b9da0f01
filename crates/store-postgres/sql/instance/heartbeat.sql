-- Inserts or updates an instance, and deletes instances without a heartbeat for $6 microseconds. Skips locked rows: another process is
-- updating or deleting them. Returns the migration that a program must have been built with to use the schema.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::timestamptz, statement_timestamp()) AS now
), gone AS (
    DELETE FROM {schema}.instance WHERE id = ANY (ARRAY(
        SELECT i.id FROM {schema}.instance i, clock
        WHERE i.seen_at < clock.now - $6::bigint::double precision * interval '1 microsecond' AND i.id <> $2
        FOR UPDATE OF i SKIP LOCKED))
)
INSERT INTO {schema}.instance (id, version, dispatches, listens, started_at, seen_at)
SELECT $2, $3, $4, $5, clock.now, clock.now FROM clock
ON CONFLICT (id) DO UPDATE
SET version = excluded.version, dispatches = excluded.dispatches, listens = excluded.listens, seen_at = excluded.seen_at
RETURNING (SELECT max(m.compatible_from) FROM {schema}.leasehold_migration m) AS compatible_from
