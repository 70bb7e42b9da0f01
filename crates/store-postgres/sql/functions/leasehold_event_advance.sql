-- Advances the event log: begins a partition when the last one is long enough, and forgets partitions whose events are older than `retention`.
-- release: 1
-- Returns false if another call does so now.
-- retention: how long events are kept; NULL keeps them for ever, in one partition. Its length is an eighth of it, at least an hour, by the
-- server's clock. Changes no table: leasehold_event_tables() attaches, creates and drops them afterwards.
-- A partition begins when the sequence of ids moves to its start; its table is attached long before. Transactions that had written events by then
-- (their locks name them: `writers`) may add some with ids of an earlier partition. When they have ended, every transaction with such ids has a
-- lower number than `sealed`, and after another fold no such event is unfolded: folds read from the partition's start on.
-- Earlier partitions expire only when no open transaction has a lower number either: then no new cursor of the change stream can have missed an event.
CREATE OR REPLACE FUNCTION {schema}.leasehold_event_advance(retention interval) RETURNS boolean LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off SET lock_timeout = '200ms'
AS $$
DECLARE
    last {schema}.request_fold;
    newest {schema}.event_partition;
    current_number bigint;
    ended bigint[];
    folded bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock(7308332201::bigint) THEN
        RETURN false;
    END IF;
    SELECT * INTO newest FROM {schema}.event_partition ORDER BY number DESC LIMIT 1;
    IF retention IS NOT NULL AND newest.begun_at <= clock_timestamp() - greatest('1 hour'::interval, retention / 8::double precision)
        AND EXISTS (SELECT FROM pg_inherits i
            WHERE i.inhrelid = pg_catalog.to_regclass('{schema}.request_event_'::text || (newest.number + 1::bigint)::text)::oid)
    THEN
        PERFORM setval('{schema}.request_event_id_seq'::regclass, greatest(s.last_value, (newest.number + 1::bigint) << 40))
        FROM {schema}.request_event_id_seq s;
    END IF;
    SELECT s.last_value >> 40 INTO current_number FROM {schema}.request_event_id_seq s;
    IF current_number > newest.number THEN
        INSERT INTO {schema}.event_partition (number, begun_at, writers)
        SELECT current_number, clock_timestamp(), ARRAY(
            SELECT DISTINCT l.virtualtransaction FROM pg_locks l
            WHERE l.relation = '{schema}.request_event'::regclass::oid AND l.mode = 'RowExclusiveLock'
                AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()));
    END IF;
    IF EXISTS (SELECT FROM {schema}.event_partition p WHERE p.sealed IS NULL) THEN
        SELECT array_agg(p.number) INTO ended FROM {schema}.event_partition p WHERE p.sealed IS NULL
            AND NOT EXISTS (SELECT FROM pg_locks l WHERE l.virtualtransaction = ANY (p.writers));
        UPDATE {schema}.event_partition SET sealed = pg_snapshot_xmax(pg_current_snapshot()), writers = '{}' WHERE number = ANY (ended);
    END IF;
    SELECT p.number << 40 INTO folded FROM {schema}.event_partition p WHERE p.sealed IS NOT NULL ORDER BY p.number DESC LIMIT 1;
    SELECT * INTO last FROM {schema}.request_fold ORDER BY id DESC LIMIT 1;
    IF folded > last.events_from THEN
        BEGIN
            PERFORM pg_advisory_xact_lock(7308332186::bigint);
        EXCEPTION WHEN lock_not_available THEN
            RETURN true;
        END;
        PERFORM {schema}.leasehold_fold();
        SELECT * INTO last FROM {schema}.request_fold ORDER BY id DESC LIMIT 1;
        INSERT INTO {schema}.request_fold (position, folded_at, parked, round_from, events_from)
        VALUES (last.position, last.folded_at, last.parked, last.round_from, folded);
        DELETE FROM {schema}.request_fold WHERE id = last.id AND xmax = '0';
        last.events_from := folded;
    END IF;
    DELETE FROM {schema}.event_partition WHERE retention IS NOT NULL AND number < (
        SELECT max(p.number) FROM {schema}.event_partition p
        WHERE p.sealed <= pg_snapshot_xmin(pg_current_snapshot()) AND p.number << 40 <= last.events_from
            AND p.begun_at < clock_timestamp() - greatest(retention, '1 hour'::interval));
    RETURN true;
END
$$
