-- Returns the epoch of the present, and opens it first if this server, timeline or cluster is not known.
-- release: 1
-- p_by: the process. p_seen_xid, p_seen_job: the end of a snapshot and the id of a job that the process has seen, 0 for none. If the database has not
-- come that far, its history was rewound; an epoch that another process opened as a restart becomes one that was rewound.
-- Only the newest row may be the epoch of the present: after a move back the database has an older one of the same server.
-- Numbers are of another cluster also if the stored position of the folds is one that this cluster has not reached.
-- An epoch that is neither the first nor a plain restart continues every sequence 2^32 after the last known number, because numbers
-- of a lost part of the history may be held by processes and their callers. Fencing tokens continue higher in every epoch but the first.
CREATE OR REPLACE FUNCTION {schema}.leasehold_epoch_open(p_by text, p_seen_xid bigint, p_seen_job bigint)
RETURNS TABLE (id bigint, cause text, token_base bigint, job_xid_offset bigint, first_event_id bigint, opened boolean) LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
    jump CONSTANT bigint := 4294967296;
    here record;
    last {schema}.epoch;
    is_known boolean;
    is_renumbered boolean;
    start xid8;
    is_rewound boolean;
    new_cause text;
    base bigint := 0;
    shift bigint;
    first_event bigint;
BEGIN
    SELECT s.system_identifier, pg_postmaster_start_time() AS server_started_at,
        ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer AS timeline,
        (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()) AS database
    INTO here FROM pg_control_system() s;
    -- The first try without the lock, because almost always the epoch exists.
    FOR try IN 1..2 LOOP
        IF try = 2 THEN
            PERFORM pg_advisory_xact_lock(7308332192);
        END IF;
        SELECT e.* INTO last FROM {schema}.epoch e ORDER BY e.number DESC, e.opened_at DESC, e.id DESC LIMIT 1;
        is_renumbered := coalesce(last.system_identifier <> here.system_identifier, false) OR coalesce((
            SELECT pg_snapshot_xmax(f.position) > pg_snapshot_xmax(pg_current_snapshot())
            FROM {schema}.request_fold f ORDER BY f.id DESC LIMIT 1), false);
        is_known := coalesce(NOT is_renumbered AND last.server_started_at = here.server_started_at AND last.timeline = here.timeline
            AND last.database = here.database, false);
        IF is_known THEN
            is_rewound := last.cause = 'restarted'
                AND (p_seen_xid::text::xid8 > last.start_xid OR p_seen_job > (SELECT s.last_value FROM {schema}.job_id s));
            IF NOT is_rewound THEN
                RETURN QUERY SELECT last.id, last.cause, last.token_base, last.job_xid_offset, last.first_event_id, false;
                RETURN;
            END IF;
        END IF;
    END LOOP;
    -- The checkpoint that ends recovery or a shutdown begins where it is written. If a later one hides it, the mark is lower.
    SELECT least(pg_snapshot_xmax(pg_current_snapshot()), CASE WHEN c.redo_lsn = c.checkpoint_lsn
        THEN ((split_part(c.next_xid, ':', 1)::bigint << 32) + split_part(c.next_xid, ':', 2)::bigint)::text::xid8
        ELSE last.mark_xid END)
    INTO start FROM pg_control_checkpoint() c;
    is_rewound := coalesce(is_rewound, false) OR p_seen_xid::text::xid8 > start OR p_seen_job > (SELECT s.last_value FROM {schema}.job_id s);
    new_cause := CASE
        WHEN is_renumbered THEN 'moved'
        WHEN last.id IS NULL THEN 'created'
        WHEN last.database <> here.database THEN 'copied'
        WHEN last.timeline <> here.timeline THEN 'failed_over'
        WHEN is_rewound THEN 'rewound'
        ELSE 'restarted' END;

    -- Two writers of the same rows would diverge.
    IF new_cause = 'moved' AND EXISTS (
        SELECT FROM pg_subscription_rel r JOIN pg_subscription s ON s.oid = r.srsubid JOIN pg_class c ON c.oid = r.srrelid
        WHERE s.subenabled AND c.relnamespace = '{schema}'::regnamespace)
    THEN
        RAISE EXCEPTION 'a subscription still writes the tables of Leasehold in this database; drop it when its publisher has stopped'
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    IF new_cause <> 'created' THEN
        base := greatest((extract(epoch FROM clock_timestamp() - '2026-01-01 00:00:00+00'::timestamptz) * 1000::numeric)::bigint << 10,
            last.token_base + jump, last.mark_job_token + jump, (SELECT s.last_value FROM {schema}.job_token s) + jump,
            coalesce((SELECT max(l.token) FROM {schema}.job_lease l), 0) + jump);
        PERFORM setval('{schema}.job_token'::regclass, base);
    END IF;
    IF new_cause NOT IN ('created', 'restarted') THEN
        -- A move by logical replication does not bring sequences, but marks, which are seconds old.
        PERFORM setval('{schema}.job_id'::regclass, jump + greatest((SELECT s.last_value FROM {schema}.job_id s), last.mark_job_id,
                (SELECT max(j.id) FROM {schema}.job j), p_seen_job)),
            setval('{schema}.admission_number'::regclass, jump + greatest((SELECT s.last_value FROM {schema}.admission_number s),
                last.mark_admission, (SELECT max(t.turn) FROM {schema}.workspace_turn t))),
            -- In a moved epoch, events continue with a new partition.
            CASE WHEN new_cause <> 'moved' THEN setval('{schema}.request_event_id_seq'::regclass, jump + greatest(
                (SELECT s.last_value FROM {schema}.request_event_id_seq s), last.mark_event_id,
                (SELECT max(p.number) << 40 FROM {schema}.event_partition p), (SELECT max(f.events_from) FROM {schema}.request_fold f))) END,
            setval('{schema}.workspace_delta_id_seq'::regclass, jump + greatest((SELECT s.last_value FROM {schema}.workspace_delta_id_seq s),
                (SELECT max(d.id) FROM {schema}.workspace_delta d))),
            setval('{schema}.request_fold_id_seq'::regclass, jump + greatest((SELECT s.last_value FROM {schema}.request_fold_id_seq s),
                (SELECT max(f.id) FROM {schema}.request_fold f))),
            setval('{schema}.queue_id_seq'::regclass, 1 + greatest((SELECT s.last_value FROM {schema}.queue_id_seq s),
                (SELECT max(q.id) FROM {schema}.queue q)));
    END IF;

    shift := coalesce(last.job_xid_offset, 0);
    first_event := coalesce(last.first_event_id, 0);
    IF new_cause = 'moved' THEN
        first_event := {schema}.leasehold_event_adopt();
        -- Every number of a waiting line is one of another cluster: new ones must be above.
        SELECT greatest(shift, max(n.xid)) INTO shift FROM (
            SELECT (SELECT j.xid::text::bigint FROM {schema}.job j
                WHERE j.queue_id = l.queue_id AND j.priority = l.priority AND j.run_at IS NULL ORDER BY j.xid DESC, j.id DESC LIMIT 1) AS xid
            FROM {schema}.job_line l
            UNION ALL
            SELECT c.at_xid::text::bigint FROM {schema}.job_cursor c
        ) n;
    END IF;

    IF is_known THEN
        UPDATE {schema}.epoch e SET cause = new_cause WHERE e.id = last.id;
        RETURN QUERY SELECT last.id, new_cause, last.token_base, last.job_xid_offset, last.first_event_id, true;
        RETURN;
    END IF;
    RETURN QUERY
    INSERT INTO {schema}.epoch AS e (id, number, system_identifier, timeline, server_started_at, database, cause, start_xid, start_lsn,
        token_base, job_xid_offset, first_event_id, opened_at, opened_by, mark_xid, mark_job_id, mark_job_token, mark_admission, mark_event_id,
        marked_at)
    -- Not 0, which stands for none.
    SELECT (('x' || left(replace(gen_random_uuid()::text, '-', ''), 16))::bit(64)::bigint & 9223372036854775807) | 1::bigint,
        coalesce(last.number, 0) + 1, here.system_identifier, here.timeline, here.server_started_at, here.database, new_cause,
        start, pg_current_wal_lsn(), base, shift, first_event, now(), p_by,
        start, (SELECT s.last_value FROM {schema}.job_id s), (SELECT s.last_value FROM {schema}.job_token s),
        (SELECT s.last_value FROM {schema}.admission_number s), (SELECT s.last_value FROM {schema}.request_event_id_seq s), now()
    RETURNING e.id, e.cause, e.token_base, e.job_xid_offset, e.first_event_id, true;
END
$$
