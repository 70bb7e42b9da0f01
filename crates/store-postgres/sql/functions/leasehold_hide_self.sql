-- Returns a snapshot in which the current transaction is in progress.
-- release: 1
-- A fold that stores its snapshot as the position must not count its own transaction as folded: it may write more events.
CREATE OR REPLACE FUNCTION {schema}.leasehold_hide_self(seen pg_snapshot) RETURNS pg_snapshot LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    self xid8 := pg_current_xact_id_if_assigned();
BEGIN
    IF self IS NULL OR NOT pg_visible_in_snapshot(self, seen) THEN
        RETURN seen;
    END IF;
    RETURN pg_catalog.concat(pg_snapshot_xmin(seen)::text, ':'::text, pg_snapshot_xmax(seen)::text, ':'::text, (
        SELECT string_agg(o.xid::text, ','::text ORDER BY o.xid)
        FROM (SELECT x.xid FROM pg_snapshot_xip(seen) AS x (xid) UNION ALL SELECT self) o
    ))::pg_snapshot;
END
$$
