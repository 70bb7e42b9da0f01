-- Gives every row the transaction numbers of another cluster, which has had far more transactions, and the epochs its identity, as a restored dump has.
-- Without the sequence of admissions, as after a move by logical replication.
DO $$
DECLARE
    ahead CONSTANT bigint := 900000000000;
BEGIN
    UPDATE leasehold.request_event SET xid = (xid::text::bigint + ahead)::text::xid8;
    UPDATE leasehold.workspace_delta SET xid = (xid::text::bigint + ahead)::text::xid8;
    UPDATE leasehold.workspace_turn SET written_by = (written_by::text::bigint + ahead)::text::xid8;
    UPDATE leasehold.event_partition SET sealed = (sealed::text::bigint + ahead)::text::xid8;
    UPDATE leasehold.job SET xid = (xid::text::bigint + ahead)::text::xid8;
    UPDATE leasehold.job_cursor SET at_xid = (at_xid::text::bigint + ahead)::text::xid8,
        late_xid = ARRAY(SELECT (x::text::bigint + ahead)::text::xid8 FROM unnest(late_xid) x);
    UPDATE leasehold.request_fold f SET position = concat(pg_snapshot_xmin(position)::text::bigint + ahead, ':',
        pg_snapshot_xmax(position)::text::bigint + ahead, ':', (SELECT string_agg((x::text::bigint + ahead)::text, ',' ORDER BY x)
            FROM pg_snapshot_xip(position) x))::pg_snapshot;
    UPDATE leasehold.epoch SET system_identifier = 1, start_xid = (start_xid::text::bigint + ahead)::text::xid8,
        mark_xid = (mark_xid::text::bigint + ahead)::text::xid8;
    PERFORM setval('leasehold.admission_number', 1);
END
$$
