-- Begins and expires partitions of the event log. Events from before $2 are not needed; $1: a test's time. Returns false if this role may not change the
-- log's tables, which doctor reports, or another call does this now.
SELECT CASE WHEN pg_has_role(c.relowner, 'USAGE') AND has_schema_privilege(c.relnamespace, 'CREATE')
    THEN {schema}.leasehold_event_advance(coalesce($1::timestamptz, clock_timestamp()) - $2::timestamptz) ELSE false END AS advanced
FROM pg_class c WHERE c.oid = '{schema}.request_event'::regclass::oid
