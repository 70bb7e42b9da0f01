-- Rejects a request of `added` bytes that would exceed a quota of its workspace, and counts it for the transaction; for leasehold_enqueue.
-- release: 1
-- Compares with the folded figures plus what the transaction itself has enqueued. If the last fold is more than a second old, or could not lock the
-- row of the workspace, the changes that it did not see are added. A transaction reads these once a second at most.
-- The variable leasehold.enqueued holds for each workspace what the transaction has enqueued, until the transaction or the savepoint ends: requests,
-- bytes, unfolded requests and bytes of others, the fold after which they were read, and when, in microseconds.
-- Only reads, so it waits for no other transaction.
CREATE OR REPLACE FUNCTION {schema}.leasehold_check_quota(of_workspace uuid, added bigint, moment timestamptz) RETURNS void LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    quota record;
    enqueued jsonb := coalesce(nullif(pg_catalog.current_setting('leasehold.enqueued'::text, true), ''::text)::jsonb, '{}'::jsonb);
    kept jsonb := enqueued -> of_workspace::text;
    own_requests bigint := coalesce((kept ->> 0)::bigint, 0::bigint);
    own_bytes bigint := coalesce((kept ->> 1)::bigint, 0::bigint);
    late_requests bigint := 0::bigint;
    late_bytes bigint := 0::bigint;
    present bigint := (extract(epoch FROM moment) * 1000000::numeric)::bigint;
    read_at bigint := 0::bigint;
BEGIN
    -- One statement: a fold between two would be counted twice or not at all.
    SELECT w.max_pending, w.max_open_bytes, t.pending, t.open_bytes, f.id AS fold, f.position, f.events_from,
        f.folded_at NOT BETWEEN moment - '1 second'::interval AND moment + '1 second'::interval OR of_workspace = ANY (f.parked) AS is_old INTO quota
    FROM {schema}.workspace w CROSS JOIN LATERAL (
        SELECT t.pending, t.open_bytes FROM {schema}.workspace_turn t WHERE t.workspace_id = w.id ORDER BY t.turn DESC LIMIT 1
    ) t CROSS JOIN LATERAL (
        SELECT f.id, f.position, f.events_from, f.parked, f.folded_at FROM {schema}.request_fold f ORDER BY f.id DESC LIMIT 1
    ) f
    WHERE w.id = of_workspace;
    IF quota.is_old AND (kept ->> 4)::bigint = quota.fold
        AND abs(present - (kept ->> 5)::bigint) < 1000000::bigint
    THEN
        late_requests := (kept ->> 2)::bigint;
        late_bytes := (kept ->> 3)::bigint;
        read_at := (kept ->> 5)::bigint;
    ELSIF quota.is_old THEN
        read_at := present;
        SELECT coalesce(sum(e.pending), 0)::bigint, coalesce(sum(e.bytes), 0)::bigint INTO late_requests, late_bytes
        FROM (
            SELECT workspace_id, xid, (to_status = 'PENDING'::text)::int - (from_status IS NOT DISTINCT FROM 'PENDING'::text)::int AS pending,
                bytes
            FROM (
                SELECT workspace_id, xid, from_status, to_status, bytes FROM {schema}.request_event
                WHERE xid >= pg_snapshot_xmax(quota.position) AND id >= quota.events_from
                UNION ALL
                SELECT workspace_id, xid, from_status, to_status, bytes FROM {schema}.request_event
                WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(quota.position))) AND id >= quota.events_from
            ) fresh
            UNION ALL
            SELECT workspace_id, xid, pending, open_bytes FROM {schema}.workspace_delta WHERE xid >= pg_snapshot_xmax(quota.position)
            UNION ALL
            SELECT workspace_id, xid, pending, open_bytes FROM {schema}.workspace_delta
            WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(quota.position)))
        ) e
        WHERE e.workspace_id = of_workspace AND e.xid IS DISTINCT FROM pg_current_xact_id_if_assigned();
    END IF;
    PERFORM pg_catalog.set_config('leasehold.enqueued'::text, (enqueued || pg_catalog.jsonb_build_object(of_workspace::text,
        pg_catalog.jsonb_build_array(own_requests + 1::bigint, own_bytes + added, late_requests, late_bytes, quota.fold, read_at)))::text, true);
    own_requests := own_requests + late_requests;
    own_bytes := own_bytes + late_bytes;
    IF quota.pending + own_requests + 1::bigint > quota.max_pending THEN
        RAISE EXCEPTION 'backlog of workspace % is full: % requests are pending, 1 more would exceed its max_pending of %',
            of_workspace, quota.pending + own_requests, quota.max_pending
            USING ERRCODE = 'configuration_limit_exceeded', CONSTRAINT = 'workspace_max_pending',
                HINT = 'Retry later, or raise the limit with leasehold workspace set --max-pending.';
    ELSIF quota.open_bytes + own_bytes + added > quota.max_open_bytes THEN
        RAISE EXCEPTION 'quota of workspace % is exceeded: its open requests have % bytes, % more would exceed its max_open_bytes of %',
            of_workspace, quota.open_bytes + own_bytes, added, quota.max_open_bytes
            USING ERRCODE = 'configuration_limit_exceeded', CONSTRAINT = 'workspace_max_open_bytes',
                HINT = 'Retry when requests have ended, or raise the limit with leasehold workspace set --max-open-bytes.';
    END IF;
END
$$
