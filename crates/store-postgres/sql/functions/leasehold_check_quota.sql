-- Rejects a request of `added` bytes that would exceed a quota of its workspace, and counts it for the transaction; for leasehold_enqueue.
-- release: 1
-- Compares with the folded figures, which every server refreshes once a second, plus what the transaction itself has enqueued. The variable
-- leasehold.enqueued holds the latter until the transaction or the savepoint ends. While no server runs, nothing is folded: then the unfolded
-- events are read, which contain the transaction's own. Only reads, so it waits for no other transaction.
CREATE OR REPLACE FUNCTION {schema}.leasehold_check_quota(of_workspace uuid, added bigint, moment timestamptz) RETURNS void LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    quota record;
    late record;
    enqueued jsonb;
    own_requests bigint := 0::bigint;
    own_bytes bigint := 0::bigint;
BEGIN
    SELECT w.max_pending, w.max_open_bytes, t.pending, t.open_bytes INTO quota
    FROM {schema}.workspace w CROSS JOIN LATERAL (
        SELECT t.pending, t.open_bytes FROM {schema}.workspace_turn t WHERE t.workspace_id = w.id ORDER BY t.turn DESC LIMIT 1
    ) t
    WHERE w.id = of_workspace;
    IF EXISTS (SELECT FROM {schema}.instance i WHERE i.seen_at > moment - '30 seconds'::interval) THEN
        enqueued := nullif(pg_catalog.current_setting('leasehold.enqueued'::text, true), ''::text)::jsonb;
        own_requests := coalesce((enqueued -> of_workspace::text ->> 0)::bigint, 0::bigint);
        own_bytes := coalesce((enqueued -> of_workspace::text ->> 1)::bigint, 0::bigint);
        PERFORM pg_catalog.set_config('leasehold.enqueued'::text, (coalesce(enqueued, '{}'::jsonb) || ('{"'::text || of_workspace::text
            || '": ['::text || (own_requests + 1::bigint)::text || ', '::text || (own_bytes + added)::text || ']}'::text)::jsonb)::text, true);
    ELSE
        SELECT coalesce(sum(e.pending), 0)::bigint AS pending, coalesce(sum(e.bytes), 0)::bigint AS bytes INTO late
        FROM (SELECT position, events_from FROM {schema}.request_fold ORDER BY id DESC LIMIT 1) f CROSS JOIN LATERAL (
            SELECT workspace_id, (to_status = 'PENDING'::text)::int - (from_status IS NOT DISTINCT FROM 'PENDING'::text)::int AS pending,
                bytes
            FROM (
                SELECT workspace_id, from_status, to_status, bytes FROM {schema}.request_event
                WHERE xid >= pg_snapshot_xmax(f.position) AND id >= f.events_from
                UNION ALL
                SELECT workspace_id, from_status, to_status, bytes FROM {schema}.request_event
                WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(f.position))) AND id >= f.events_from
            ) fresh
            UNION ALL
            SELECT workspace_id, pending, open_bytes FROM {schema}.workspace_delta WHERE xid >= pg_snapshot_xmax(f.position)
            UNION ALL
            SELECT workspace_id, pending, open_bytes FROM {schema}.workspace_delta
            WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(f.position)))
        ) e
        WHERE e.workspace_id = of_workspace;
        own_requests := late.pending;
        own_bytes := late.bytes;
    END IF;
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
