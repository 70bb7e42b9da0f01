-- Claims up to p_max jobs of the queue p_queue, unless its name is not p_name, as many as have 4 MiB of payload, progress and error together, and at least one.
-- release: 1
-- One claim of a queue at a time: it holds the advisory lock of the queue until it commits, and so does a change of the
-- queue's limit. If all queues together have a limit, one claim at a time in total.
-- The first row has no id: it has the queue's settings, the expiry of the leases, whether a limit ended the claim, when the
-- next waiting job is due, and how many leases had expired. The other rows are the jobs with their own settings.
-- p_expired_max = 0: does not scan for expired leases.
-- p_places, p_held_names, p_held: the places of the caller and what each group holds of them; see leasehold_job_turns.
-- p_xid_offset: the job_xid_offset of the epoch. Lower numbers in cursors are of another cluster, where their transactions have ended.
CREATE OR REPLACE FUNCTION {schema}.leasehold_job_claim(
    p_now timestamptz, p_queue integer, p_name text, p_worker text, p_max integer, p_lease_us bigint, p_expired_from timestamptz,
    p_expired_max integer, p_xid_offset bigint, p_places integer, p_held_names text[], p_held integer[]
) RETURNS TABLE (
    id bigint, token bigint, attempt integer, priority smallint, created_at timestamptz, kind text, payload json,
    max_attempts integer, backoff_base_us bigint, backoff_max_us bigint, backoff_factor double precision,
    backoff_jitter double precision, timeout_us bigint, trace_context text, progress json, last_error text,
    group_name text, lease_us bigint, lease_expires_at timestamptz, at_limit boolean, next_due_us bigint, expired integer
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    about record;
    moment timestamptz;
    ends_at timestamptz;
    room integer;
    wanted integer := p_max;
    -- CLAIM_MAX_BYTES; a compressed document counts with PAYLOAD_MAX_BYTES until its size is read.
    -- A job of a graph counts what is read and built for it, as its reference says; a reference without a number counts nothing.
    bytes_left bigint := 4194304;
    bytes bigint;
    spot tid;
    take integer;
    fitting integer;
    freed integer := 0;
    line record;
    pick record;
    to_xid xid8;
    late_xids xid8[];
    late_ids bigint[];
    picked bigint[] := '{}';
    spots tid[] := '{}';
    tries integer[] := '{}';
    some_nodes boolean := false;
    next_due timestamptz;
    -- In a queue with groups: the round before and after, the jobs in turn, and those of the lines.
    is_grouped boolean := false;
    total integer;
    was_version bigint;
    round {schema}.job_round;
    turns record;
    own_ids bigint[];
    own_spots tid[];
    own_tries integer[];
    groups text[];
    cut integer;
BEGIN
    -- The shared lock blocks changes of the total limit.
    PERFORM pg_advisory_xact_lock_shared(730833, 0), pg_advisory_xact_lock(730834, p_queue);
    moment := coalesce(p_now, clock_timestamp());
    SELECT q.*, t.max_running AS total,
        p_expired_max > 0 AND EXISTS (
            SELECT FROM {schema}.job_lease l WHERE l.expires_at > p_expired_from AND l.expires_at <= moment) AS some_expired,
        (SELECT w.run_at FROM {schema}.job_waiting w
            WHERE w.queue_id = p_queue AND NOT w.ready ORDER BY w.run_at, w.job_id LIMIT 1) AS next_due
    INTO about FROM {schema}.queue q CROSS JOIN {schema}.job_limit t WHERE q.id = p_queue AND q.name = p_name AND t.one;
    IF NOT FOUND OR about.paused THEN
        RETURN;
    END IF;
    IF about.total IS NOT NULL THEN
        PERFORM pg_advisory_xact_lock(730833, 1);
        moment := coalesce(p_now, clock_timestamp());
    END IF;
    ends_at := moment + coalesce(p_lease_us, about.lease_us)::double precision * interval '1 microsecond';
    next_due := about.next_due;

    IF about.some_expired THEN
        SELECT count(*) INTO freed FROM {schema}.leasehold_job_expire(moment, p_expired_from, p_expired_max, p_xid_offset);
        IF freed > 0 THEN
            PERFORM {schema}.leasehold_job_notify();
        END IF;
    END IF;
    IF about.max_running IS NOT NULL THEN
        SELECT about.max_running - coalesce(sum(l.entries), 0) INTO room FROM {schema}.job_lease l WHERE l.queue_id = p_queue;
    END IF;
    IF about.total IS NOT NULL THEN
        SELECT least(room, about.total - coalesce(sum(l.entries), 0)) INTO room FROM {schema}.job_lease l;
    END IF;
    wanted := greatest(least(p_max, room), 0);

    IF next_due <= moment AND p_max > 0 THEN
        -- The jobs of groups get the number of this transaction, so that the fold finds them.
        UPDATE {schema}.job_waiting w SET ready = true, xid = CASE WHEN w.group_name IS NOT NULL THEN
            (pg_current_xact_id()::text::bigint + p_xid_offset)::text::xid8 END
        FROM (
            SELECT d.job_id FROM {schema}.job_waiting d
            WHERE d.queue_id = p_queue AND NOT d.ready AND d.run_at <= moment
            ORDER BY d.run_at, d.job_id LIMIT greatest(p_max, 1000) FOR UPDATE SKIP LOCKED
        ) d
        WHERE w.job_id = d.job_id;
        SELECT w.run_at INTO next_due FROM {schema}.job_waiting w
        WHERE w.queue_id = p_queue AND NOT w.ready ORDER BY w.run_at, w.job_id LIMIT 1;
    END IF;

    -- Only lines that may have jobs.
    <<lines>>
    FOR line IN
        SELECT n.priority, coalesce(c.version, 0) AS version, coalesce(c.at_xid, '0') AS at_xid, coalesce(c.at_id, 0) AS at_id,
            coalesce(c.late_xid, '{}') AS late_xid, coalesce(c.late_id, '{}') AS late_id, w.some IS NOT NULL AS some_waiting,
            lead(n.priority) OVER (ORDER BY n.priority DESC) IS NOT NULL AS more_lines
        FROM {schema}.job_line n
        LEFT JOIN LATERAL (
            SELECT c.* FROM {schema}.job_cursor c WHERE c.queue_id = p_queue AND c.priority = n.priority
            ORDER BY c.version DESC LIMIT 1
        ) c ON true
        LEFT JOIN LATERAL (
            SELECT 1 AS some FROM {schema}.job_waiting w WHERE w.queue_id = p_queue AND w.priority = n.priority AND w.ready AND w.group_name IS NULL LIMIT 1
        ) w ON true
        LEFT JOIN LATERAL (
            SELECT 1 AS some FROM {schema}.job j
            WHERE j.queue_id = p_queue AND j.priority = n.priority AND j.run_at IS NULL
                AND (j.xid, j.id) > (coalesce(c.at_xid, '0'), coalesce(c.at_id, 0))
            ORDER BY j.xid, j.id LIMIT 1
        ) f ON true
        WHERE n.queue_id = p_queue AND wanted > 0
            AND (n.priority = 32767 OR w.some IS NOT NULL OR cardinality(c.late_xid) > 0 OR f.some IS NOT NULL)
        ORDER BY n.priority DESC
    LOOP
        EXIT WHEN wanted <= 0;
        IF line.priority = 32767 THEN
            -- The marker of a queue with groups, before its lines.
            is_grouped := true;
            round := {schema}.leasehold_job_fold(p_queue, p_xid_offset);
            was_version := round.version;
            IF round.group_limit IS DISTINCT FROM about.group_limit
                OR round.recount_after <= (pg_snapshot_xmin(pg_current_snapshot())::text::bigint + p_xid_offset)::text::xid8
            THEN
                round := {schema}.leasehold_job_recount(p_queue, about.group_limit, round, p_xid_offset);
            END IF;
            round := {schema}.leasehold_job_ungrouped(p_queue, line.more_lines, round);
            turns := {schema}.leasehold_job_turns(p_queue, about.group_limit, round.round_from, wanted, wanted, p_places, p_held_names, p_held);
            -- The lines give the jobs without group; of the bytes they may use their part.
            take := (SELECT count(*) FROM unnest(turns.givers, turns.ids) AS t (giver, id) WHERE t.giver IS NOT NULL AND t.id IS NULL);
            bytes_left := 4194304::bigint * take / greatest(coalesce(cardinality(turns.givers), 0), 1);
            total := wanted;
            wanted := take;
            CONTINUE;
        END IF;
        take := wanted;
        fitting := NULL;
        LOOP
            IF cardinality(line.late_xid) = 0 AND NOT line.some_waiting THEN
                SELECT pg_current_snapshot() AS seen, count(*)::integer AS found,
                    array_agg(m.id) AS ids, array_agg(m.spot) AS spots, array_fill(1, ARRAY[count(*)::integer]) AS tries,
                    bool_or(m.of_graph) AS some_nodes, sum(m.bytes) AS bytes,
                    NULL::bigint[] AS waiting, NULL::bigint[] AS orphans, NULL::xid8[] AS late_xid, NULL::bigint[] AS late_id, NULL::xid8[] AS late_left,
                    array_agg(m.xid) AS main_xid, array_agg(m.id) AS main_id
                INTO pick
                FROM (
                    SELECT j.id, j.xid, j.ctid AS spot, j.node IS NOT NULL AS of_graph,
                        CASE WHEN j.node IS NOT NULL THEN coalesce(substring(j.payload ->> 'bytes'::text FROM '^[0-9]{1,9}$'::text)::integer, 0)
                            WHEN pg_column_compression(j.payload) IS NULL THEN pg_column_size(j.payload) ELSE 262144 END AS bytes
                    FROM {schema}.job j
                    WHERE j.queue_id = p_queue AND j.priority = line.priority AND j.run_at IS NULL
                        AND (j.xid, j.id) > (line.at_xid, line.at_id)
                    ORDER BY j.xid, j.id LIMIT take
                ) m;
            ELSE
                -- Fresh jobs keep the order of their line even if their times do not: they sort by the running maximum.
                WITH waiting AS (
                    SELECT w.job_id, w.created_at, w.attempts FROM {schema}.job_waiting w
                    WHERE w.queue_id = p_queue AND w.priority = line.priority AND w.ready AND w.group_name IS NULL
                    ORDER BY w.created_at, w.job_id LIMIT take FOR UPDATE SKIP LOCKED
                ), late AS (
                    SELECT j.id, j.xid, j.created_at, j.spot, j.of_graph, j.bytes
                    FROM unnest(line.late_xid, line.late_id) AS l (xid, id)
                    CROSS JOIN LATERAL (
                        SELECT j.id, j.xid, j.created_at, j.ctid AS spot, j.node IS NOT NULL AS of_graph,
                            CASE WHEN j.node IS NOT NULL THEN coalesce(substring(j.payload ->> 'bytes'::text FROM '^[0-9]{1,9}$'::text)::integer, 0)
                                WHEN pg_column_compression(j.payload) IS NULL THEN pg_column_size(j.payload) ELSE 262144 END AS bytes
                        FROM {schema}.job j
                        WHERE j.queue_id = p_queue AND j.priority = line.priority AND j.run_at IS NULL
                            AND (j.xid, j.id) > (l.xid, l.id) AND j.xid <= l.xid
                        ORDER BY j.xid, j.id LIMIT take
                    ) j
                ), main AS (
                    SELECT j.id, j.xid, j.created_at, j.ctid AS spot, j.node IS NOT NULL AS of_graph,
                        CASE WHEN j.node IS NOT NULL THEN coalesce(substring(j.payload ->> 'bytes'::text FROM '^[0-9]{1,9}$'::text)::integer, 0)
                            WHEN pg_column_compression(j.payload) IS NULL THEN pg_column_size(j.payload) ELSE 262144 END AS bytes
                    FROM {schema}.job j
                    WHERE j.queue_id = p_queue AND j.priority = line.priority AND j.run_at IS NULL
                        AND (j.xid, j.id) > (line.at_xid, line.at_id)
                    ORDER BY j.xid, j.id LIMIT take
                ), taken AS (
                    SELECT w.job_id AS id, NULL::xid8 AS xid, 0 AS source, w.created_at AS at, w.job_id AS at_id,
                        w.attempts + 1 AS try, j.spot, j.of_graph, j.bytes + coalesce(o.bytes, 0) AS bytes
                    FROM waiting w
                    LEFT JOIN LATERAL (
                        SELECT j.ctid AS spot, j.node IS NOT NULL AS of_graph,
                            CASE WHEN j.node IS NOT NULL THEN coalesce(substring(j.payload ->> 'bytes'::text FROM '^[0-9]{1,9}$'::text)::integer, 0)
                                WHEN pg_column_compression(j.payload) IS NULL THEN pg_column_size(j.payload) ELSE 262144 END AS bytes
                        FROM {schema}.job j WHERE j.id = w.job_id LIMIT 1
                    ) j ON true
                    LEFT JOIN LATERAL (
                        SELECT coalesce(octet_length(o.last_error), 0)
                            + CASE WHEN pg_column_compression(o.progress) IS NULL THEN coalesce(pg_column_size(o.progress), 0)
                                ELSE 262144 END AS bytes
                        FROM {schema}.job_note o WHERE o.job_id = w.job_id LIMIT 1
                    ) o ON true
                    UNION ALL
                    SELECT l.id, l.xid, 1, max(l.created_at) OVER by_line, max(l.id) OVER by_line, 1, l.spot, l.of_graph,
                        l.bytes
                    FROM late l WINDOW by_line AS (ORDER BY l.xid, l.id)
                    UNION ALL
                    SELECT m.id, m.xid, 2, max(m.created_at) OVER by_line, max(m.id) OVER by_line, 1, m.spot, m.of_graph,
                        m.bytes
                    FROM main m WINDOW by_line AS (ORDER BY m.xid, m.id)
                    ORDER BY at, at_id, xid, id LIMIT take
                )
                SELECT pg_current_snapshot() AS seen, count(*)::integer AS found,
                    array_agg(t.id) AS ids, array_agg(t.spot) AS spots, array_agg(t.try) AS tries,
                    bool_or(t.of_graph) AS some_nodes, sum(t.bytes) AS bytes, array_agg(t.id) FILTER (WHERE t.source = 0) AS waiting,
                    array_agg(t.id) FILTER (WHERE t.spot IS NULL) AS orphans,
                    array_agg(t.xid) FILTER (WHERE t.source = 1) AS late_xid, array_agg(t.id) FILTER (WHERE t.source = 1) AS late_id,
                    ARRAY(SELECT l.xid FROM late l GROUP BY l.xid
                        HAVING count(*) >= take OR bool_or(l.id NOT IN (SELECT u.id FROM taken u))) AS late_left,
                    array_agg(t.xid) FILTER (WHERE t.source = 2) AS main_xid, array_agg(t.id) FILTER (WHERE t.source = 2) AS main_id
                INTO pick FROM taken t;
            END IF;
            -- A waiting row whose job was deleted by hand: removes it and picks again.
            IF pick.orphans IS NOT NULL THEN
                DELETE FROM {schema}.job_waiting w WHERE w.job_id = ANY (pick.orphans);
                CONTINUE;
            END IF;

            -- Reads sizes only if the jobs may not fit. With fewer jobs to take, picks again.
            EXIT WHEN fitting IS NOT NULL OR coalesce(pick.bytes, 0) <= bytes_left;
            fitting := 0;
            FOREACH spot IN ARRAY pick.spots LOOP
                SELECT CASE WHEN j.node IS NULL THEN octet_length(j.payload::text)
                        ELSE coalesce(substring(j.payload ->> 'bytes'::text FROM '^[0-9]{1,9}$'::text)::integer, 0) END
                    + coalesce((
                    SELECT coalesce(octet_length(o.progress::text), 0) + coalesce(octet_length(o.last_error), 0)
                    FROM {schema}.job_note o WHERE o.job_id = j.id LIMIT 1), 0)
                INTO bytes FROM {schema}.job j WHERE j.ctid = spot;
                EXIT WHEN bytes > bytes_left AND cardinality(picked) + fitting > 0;
                bytes_left := bytes_left - coalesce(bytes, 0);
                fitting := fitting + 1;
            END LOOP;
            EXIT WHEN fitting = pick.found;
            EXIT lines WHEN fitting = 0;
            take := fitting;
        END LOOP;
        IF fitting IS NULL THEN
            bytes_left := bytes_left - coalesce(pick.bytes, 0);
        END IF;

        IF pick.main_id IS NOT NULL OR cardinality(line.late_xid) > 0 THEN
            to_xid := coalesce(pick.main_xid[cardinality(pick.main_xid)], line.at_xid);
            late_xids := '{}';
            late_ids := '{}';
            IF cardinality(line.late_xid) > 0 OR (CASE WHEN p_xid_offset = 0 THEN pg_snapshot_xmin(pick.seen)
                    ELSE (pg_snapshot_xmin(pick.seen)::text::bigint + p_xid_offset)::text::xid8 END) < to_xid THEN
                -- A passed transaction is removed when it has ended and all its jobs are claimed.
                SELECT coalesce(array_agg(l.xid), '{}'), coalesce(array_agg(l.id), '{}') INTO late_xids, late_ids
                FROM (
                    SELECT l.xid, coalesce(t.id, l.id) AS id
                    FROM unnest(line.late_xid, line.late_id) AS l (xid, id)
                    LEFT JOIN (
                        SELECT t.xid, max(t.id) AS id FROM unnest(pick.late_xid, pick.late_id) AS t (xid, id) GROUP BY t.xid
                    ) t ON t.xid = l.xid
                    WHERE l.xid = ANY (pick.late_left) OR (l.xid::text::bigint > p_xid_offset
                        AND NOT pg_visible_in_snapshot((l.xid::text::bigint - p_xid_offset)::text::xid8, pick.seen))
                    UNION ALL
                    SELECT x.xid, 0 FROM (
                        SELECT (s.xid::text::bigint + p_xid_offset)::text::xid8 AS xid FROM pg_snapshot_xip(pick.seen) AS s (xid)
                    ) x
                    WHERE x.xid > line.at_xid AND x.xid < to_xid
                ) l;
            END IF;
            IF pick.main_id IS NOT NULL OR late_xids <> line.late_xid OR late_ids <> line.late_id THEN
                WITH gone AS (
                    -- A version that another transaction has locked (xmax) stays until it is pruned; only the highest is read.
                    DELETE FROM {schema}.job_cursor c
                    WHERE c.queue_id = p_queue AND c.priority = line.priority AND c.version = line.version AND c.xmax = '0'
                )
                INSERT INTO {schema}.job_cursor (queue_id, priority, version, at_xid, at_id, late_xid, late_id)
                VALUES (p_queue, line.priority, line.version + 1, to_xid,
                    coalesce(pick.main_id[cardinality(pick.main_id)], line.at_id), late_xids, late_ids);
            END IF;
        END IF;
        IF pick.waiting IS NOT NULL THEN
            DELETE FROM {schema}.job_waiting w WHERE w.job_id = ANY (pick.waiting);
        END IF;
        IF pick.found > 0 THEN
            picked := picked || pick.ids;
            spots := spots || pick.spots;
            tries := tries || pick.tries;
            some_nodes := some_nodes OR pick.some_nodes;
            wanted := wanted - pick.found;
        END IF;
        -- Jobs of lower lines do not pass those that did not fit.
        EXIT lines WHEN take < wanted + pick.found;
    END LOOP;

    IF is_grouped THEN
        IF cardinality(picked) < (SELECT count(*) FROM unnest(turns.givers, turns.ids) AS t (giver, id) WHERE t.giver IS NOT NULL AND t.id IS NULL) THEN
            turns := {schema}.leasehold_job_turns(p_queue, about.group_limit, round.round_from, total, cardinality(picked), p_places, p_held_names, p_held);
        END IF;
        bytes_left := 4194304 - (4194304::bigint * cardinality(picked) / greatest(coalesce(cardinality(turns.givers), 0), 1) - bytes_left);
        cut := coalesce(cardinality(turns.givers), 0);
        IF (SELECT sum(b.n) FROM unnest(turns.bytes) AS b (n)) > bytes_left THEN
            FOR i IN 1..cut LOOP
                CONTINUE WHEN turns.ids[i] IS NULL;
                SELECT CASE WHEN j.node IS NULL THEN octet_length(j.payload::text)
                        ELSE coalesce(substring(j.payload ->> 'bytes'::text FROM '^[0-9]{1,9}$'::text)::integer, 0) END
                    + coalesce((
                    SELECT coalesce(octet_length(o.progress::text), 0) + coalesce(octet_length(o.last_error), 0)
                    FROM {schema}.job_note o WHERE o.job_id = j.id LIMIT 1), 0)
                INTO bytes FROM {schema}.job j WHERE j.ctid = turns.spots[i];
                IF bytes > bytes_left AND i > 1 THEN
                    cut := i - 1;
                    EXIT;
                END IF;
                bytes_left := bytes_left - coalesce(bytes, 0);
            END LOOP;
        END IF;
        own_ids := picked;
        own_spots := spots;
        own_tries := tries;
        SELECT array_agg(m.id), array_agg(m.spot), array_agg(m.try), array_agg(m.name), some_nodes OR coalesce(bool_or(m.of_graph), false)
        INTO picked, spots, tries, groups, some_nodes
        FROM (
            SELECT coalesce(t.id, own_ids[t.own]) AS id, coalesce(t.spot, own_spots[t.own]) AS spot,
                CASE WHEN t.id IS NULL THEN own_tries[t.own] ELSE t.try END AS try, t.of_graph, turns.names[t.giver] AS name
            FROM (
                SELECT u.*, count(*) FILTER (WHERE u.id IS NULL) OVER (ORDER BY u.pos) AS own
                FROM unnest(turns.ids, turns.spots, turns.tries, turns.nodes, turns.givers) WITH ORDINALITY AS u (id, spot, try, of_graph, giver, pos)
            ) t
            -- The jobs of lines are claimed already.
            WHERE t.pos <= cut OR t.id IS NULL AND t.own <= cardinality(own_ids)
            ORDER BY t.pos
        ) m;
        picked := coalesce(picked, '{}');
        round := {schema}.leasehold_job_take(p_queue, about.group_limit, round, cut, turns.ids, turns.waiting, turns.ranks, turns.times, turns.givers,
            turns.names, turns.rows, turns.leftover, turns.running, turns.counts, turns.skipped, turns.idle);
        DELETE FROM {schema}.job_round r WHERE r.queue_id = p_queue AND r.version = was_version AND r.xmax = '0';
        round.version := was_version + 1;
        INSERT INTO {schema}.job_round SELECT round.*;
        wanted := total - cardinality(picked);
    END IF;

    RETURN QUERY
    WITH page AS (
        INSERT INTO {schema}.job_lease AS l (token, claimed_at, expires_at, queue_id, entries, nodes, worker, ids, ends, attempts, groups)
        SELECT nextval('{schema}.job_token'::regclass), moment, ends_at, p_queue, p.entries, some_nodes, p_worker,
            picked[p.first:p.first + 63], array_fill(ends_at, ARRAY[p.entries]), tries[p.first:p.first + 63],
            CASE WHEN groups IS NOT NULL THEN groups[p.first:p.first + 63] END
        FROM (
            SELECT s.first, least(64, cardinality(picked) - s.first + 1) AS entries
            FROM generate_series(1, cardinality(picked), 64) AS s (first)
        ) p
        RETURNING l.token
    ), numbered AS (
        SELECT p.token, row_number() OVER (ORDER BY p.token) - 1 AS number FROM page p
    )
    SELECT NULL::bigint, NULL::bigint, NULL::integer, NULL::smallint, NULL::timestamptz, NULL::text, NULL::json,
        about.max_attempts, about.backoff_base_us, about.backoff_max_us, about.backoff_factor,
        about.backoff_jitter, about.timeout_us, NULL::text, NULL::json, NULL::text, NULL::text,
        coalesce(p_lease_us, about.lease_us), ends_at, coalesce(room < p_max AND cardinality(picked) >= room, false),
        CASE WHEN cardinality(picked) < p_max THEN (extract(epoch FROM next_due - moment) * 1000000::numeric)::bigint END, freed
    UNION ALL
    SELECT j.id, n.token, e.attempt, j.priority, j.created_at, j.kind, j.payload, j.max_attempts, j.backoff_base_us,
        j.backoff_max_us, j.backoff_factor, j.backoff_jitter, j.timeout_us, j.trace_context, o.progress, o.last_error, j.group_name,
        NULL::bigint, NULL::timestamptz, NULL::boolean, NULL::bigint, NULL::integer
    FROM numbered n
    CROSS JOIN LATERAL unnest(spots[n.number * 64 + 1:n.number * 64 + 64], tries[n.number * 64 + 1:n.number * 64 + 64])
        AS e (spot, attempt)
    JOIN {schema}.job j ON j.ctid = e.spot
    LEFT JOIN LATERAL (SELECT o.progress, o.last_error FROM {schema}.job_note o WHERE o.job_id = j.id LIMIT 1) o ON true;
END
$$
