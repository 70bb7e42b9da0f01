-- Attaches the tables of the event log's partitions, creates spare ones, and drops those that are detached. Returns the statements that detach others.
-- release: 1
-- Attached are the partitions that leasehold_event_advance() lists and the next one, also if their rows came by replication. Eight more tables are
-- spare. Those below the first in the list have expired. PostgreSQL detaches without stopping others only outside a transaction: the caller runs
-- the statements, one by one. `FINALIZE` completes a detachment that was interrupted.
-- The CHECK of a spare table makes it cheap to attach, also after rows were replicated into it. Attaching drops it: every insert would parse it.
-- A spare table from before a migration that added columns is created again.
CREATE OR REPLACE FUNCTION {schema}.leasehold_event_tables() RETURNS TABLE (detach text) LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off SET lock_timeout = '200ms'
AS $$
DECLARE
    first_kept bigint;
    ahead bigint;
    name text;
    has_rows boolean;
    create_table text;
    attach text;
    part record;
BEGIN
    PERFORM pg_advisory_xact_lock(7308332201::bigint);
    SELECT min(p.number) INTO first_kept FROM {schema}.event_partition p;
    SELECT greatest((SELECT max(p.number) FROM {schema}.event_partition p), s.last_value >> 40) + 1::bigint INTO ahead
    FROM {schema}.request_event_id_seq s;
    FOR wanted IN first_kept .. ahead + 8::bigint LOOP
        name := '{schema}.request_event_'::text || wanted::text;
        CONTINUE WHEN EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = pg_catalog.to_regclass(name)::oid);
        create_table := pg_catalog.format('CREATE TABLE %s (LIKE {schema}.request_event INCLUDING ALL EXCLUDING IDENTITY,'
            ' CONSTRAINT request_event_ids CHECK (id >= %s AND id < %s))'::text, name, wanted::bigint << 40, (wanted + 1)::bigint << 40);
        attach := pg_catalog.format('ALTER TABLE {schema}.request_event ATTACH PARTITION %1$s FOR VALUES FROM (%2$s) TO (%3$s);'
            ' ALTER TABLE %1$s DROP CONSTRAINT IF EXISTS request_event_ids'::text, name, wanted::bigint << 40, (wanted + 1)::bigint << 40);
        IF pg_catalog.to_regclass(name) IS NULL THEN
            EXECUTE create_table;
        END IF;
        CONTINUE WHEN wanted > ahead;
        BEGIN
            -- Writers do not wait for this. Autovacuum may be busy with replicated rows; after deadlock_timeout PostgreSQL interrupts it.
            PERFORM pg_catalog.set_config('lock_timeout'::text, '1900ms'::text, true);
            EXECUTE attach;
        EXCEPTION WHEN datatype_mismatch THEN
            EXECUTE pg_catalog.format('SELECT EXISTS (SELECT FROM %s)'::text, name) INTO has_rows;
            IF has_rows THEN
                RAISE;
            END IF;
            EXECUTE pg_catalog.format('DROP TABLE %s'::text, name);
            EXECUTE create_table;
            EXECUTE attach;
        END;
    END LOOP;
    PERFORM pg_catalog.set_config('lock_timeout'::text, '200ms'::text, true);
    FOR part IN
        SELECT pg_catalog.format('{schema}.%I'::text, c.relname) AS name, i.inhrelid IS NOT NULL AS is_attached,
            coalesce(i.inhdetachpending, false) AS is_pending
        FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
        WHERE c.relnamespace = '{schema}'::regnamespace::oid AND c.relkind = 'r' AND c.relname::text ~ '^request_event_[0-9]+$'::text
            AND substr(c.relname::text, 15)::bigint < first_kept
        ORDER BY coalesce(i.inhdetachpending, false) DESC, substr(c.relname::text, 15)::bigint
    LOOP
        IF part.is_attached THEN
            detach := pg_catalog.format('ALTER TABLE {schema}.request_event DETACH PARTITION %s %s'::text, part.name,
                CASE WHEN part.is_pending THEN 'FINALIZE'::text ELSE 'CONCURRENTLY'::text END);
            RETURN NEXT;
        ELSE
            BEGIN
                EXECUTE pg_catalog.format('DROP TABLE %s'::text, part.name);
            EXCEPTION WHEN lock_not_available THEN
                -- A transaction reads the table: the next call drops it.
                NULL;
            END;
        END IF;
    END LOOP;
END
$$
