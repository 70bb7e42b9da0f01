-- Inserts or updates an instance, and deletes instances without a heartbeat for $6 microseconds. Skips locked rows: another process is
-- updating or deleting them. At most once in five seconds for all instances, marks how far the epoch has come. Returns the migration that a program must have been built with to use the schema.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::timestamptz, statement_timestamp()) AS now
), gone AS (
    DELETE FROM {schema}.instance WHERE id = ANY (ARRAY(
        SELECT i.id FROM {schema}.instance i, clock
        WHERE i.seen_at < clock.now - $6::bigint::double precision * interval '1 microsecond' AND i.id <> $2
        FOR UPDATE OF i SKIP LOCKED))
), stale AS MATERIALIZED (
    SELECT e.id FROM {schema}.epoch e
    WHERE e.id = (SELECT l.id FROM {schema}.epoch l ORDER BY l.number DESC, l.opened_at DESC, l.id DESC LIMIT 1)
        AND e.marked_at < now() - '5 seconds'::interval
    FOR UPDATE SKIP LOCKED
), marked AS (
    UPDATE {schema}.epoch e
    SET mark_xid = pg_snapshot_xmax(pg_current_snapshot()), mark_job_id = (SELECT s.last_value FROM {schema}.job_id s),
        mark_job_token = (SELECT s.last_value FROM {schema}.job_token s),
        mark_admission = (SELECT s.last_value FROM {schema}.admission_number s),
        mark_event_id = (SELECT s.last_value FROM {schema}.request_event_id_seq s), marked_at = now()
    FROM stale WHERE e.id = stale.id
)
INSERT INTO {schema}.instance (id, version, dispatches, listens, started_at, seen_at)
SELECT $2, $3, $4, $5, clock.now, clock.now FROM clock
ON CONFLICT (id) DO UPDATE
SET version = excluded.version, dispatches = excluded.dispatches, listens = excluded.listens, seen_at = excluded.seen_at
RETURNING (SELECT max(m.compatible_from) FROM {schema}.leasehold_migration m) AS compatible_from,
    pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS snapshot_end
