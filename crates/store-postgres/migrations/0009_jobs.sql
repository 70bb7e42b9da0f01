-- The WorkQueue: jobs, their leases and their ends. docs/adr/0005-the-workqueue.md says why it looks like this.

CREATE TABLE queue (
    id integer GENERATED ALWAYS AS IDENTITY,
    name text NOT NULL,
    max_running integer,
    paused boolean NOT NULL DEFAULT false,
    keep_completed boolean NOT NULL DEFAULT true,
    lease_us bigint NOT NULL DEFAULT 30000000,
    max_attempts integer NOT NULL DEFAULT 25,
    -- First wait and longest wait in microseconds, what each further failure multiplies it by, the part that is random.
    backoff_base_us bigint NOT NULL DEFAULT 1000000,
    backoff_max_us bigint NOT NULL DEFAULT 300000000,
    backoff_factor double precision NOT NULL DEFAULT 2,
    backoff_jitter double precision NOT NULL DEFAULT 0.2,
    timeout_us bigint,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT queue_pkey PRIMARY KEY (id),
    CONSTRAINT queue_name UNIQUE (name),
    CONSTRAINT queue_name_length CHECK (length(name) BETWEEN 1 AND 128),
    CONSTRAINT queue_limit CHECK (max_running >= 0),
    CONSTRAINT queue_lease CHECK (lease_us > 0),
    CONSTRAINT queue_attempts CHECK (max_attempts > 0),
    CONSTRAINT queue_timeout CHECK (timeout_us > 0)
);

-- One row: what holds for the jobs of all queues together, and the cluster whose transaction numbers are in job.xid.
CREATE TABLE job_limit (
    one boolean NOT NULL DEFAULT true,
    max_running integer,
    cluster bigint NOT NULL,
    CONSTRAINT job_limit_pkey PRIMARY KEY (one),
    CONSTRAINT job_limit_one CHECK (one),
    CONSTRAINT job_limit_limit CHECK (max_running >= 0)
);

INSERT INTO job_limit (cluster) SELECT system_identifier FROM pg_control_system();

CREATE SEQUENCE job_id;
CREATE SEQUENCE job_token;

-- What was asked for. Written once and never changed, so that it leaves nothing dead behind. Where a job is, is said by
-- exactly one of: job_waiting, job_lease, job_end; or, where it is in none of them, it is fresh: run_at is NULL and it lies
-- beyond its line's cursor. A node of a graph has its execution and its place in the graph.
CREATE TABLE job (
    id bigint NOT NULL DEFAULT nextval('job_id'),
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- NULL: at once.
    run_at timestamptz,
    timeout_us bigint,
    backoff_base_us bigint,
    backoff_max_us bigint,
    backoff_factor double precision,
    backoff_jitter double precision,
    queue_id integer NOT NULL,
    max_attempts integer,
    priority smallint NOT NULL DEFAULT 0,
    node smallint,
    execution_id uuid,
    kind text NOT NULL,
    payload json NOT NULL,
    trace_context text,
    CONSTRAINT job_pkey PRIMARY KEY (id),
    CONSTRAINT job_node CHECK ((execution_id IS NULL) = (node IS NULL)),
    CONSTRAINT job_priority_range CHECK (priority BETWEEN -1000 AND 1000),
    CONSTRAINT job_kind_length CHECK (length(kind) BETWEEN 1 AND 128),
    -- PostgreSQL knows times that no program can read.
    CONSTRAINT job_run_at CHECK (run_at < '9999-01-01')
);

-- A line: the fresh jobs of a queue with one priority, in the order of the transactions that brought them.
CREATE INDEX job_fresh ON job (queue_id, priority, xid, id) WHERE run_at IS NULL;

-- Which lines there are. Only ever inserted into.
CREATE TABLE job_line (
    queue_id integer NOT NULL,
    priority smallint NOT NULL,
    CONSTRAINT job_line_pkey PRIMARY KEY (queue_id, priority)
);

-- How far a line has been claimed. A claim inserts the next version and deletes the last, and reads the highest: dead
-- versions lie behind it, however many an old snapshot keeps.
-- late_xid are transactions before the cursor that were in flight when it passed them, late_id how far each has been claimed.
CREATE TABLE job_cursor (
    queue_id integer NOT NULL,
    priority smallint NOT NULL,
    version bigint NOT NULL,
    at_xid xid8 NOT NULL,
    at_id bigint NOT NULL,
    late_xid xid8[] NOT NULL,
    late_id bigint[] NOT NULL,
    CONSTRAINT job_cursor_pkey PRIMARY KEY (queue_id, priority, version)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Queued jobs that are not fresh: for later, tried again, given back.
CREATE TABLE job_waiting (
    job_id bigint NOT NULL,
    created_at timestamptz NOT NULL,
    run_at timestamptz NOT NULL,
    token bigint NOT NULL DEFAULT 0,
    queue_id integer NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    priority smallint NOT NULL,
    -- Whether its time had come when a claim looked last.
    ready boolean NOT NULL,
    CONSTRAINT job_waiting_pkey PRIMARY KEY (job_id),
    CONSTRAINT job_waiting_run_at CHECK (run_at < '9999-01-01')
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE INDEX job_waiting_ready ON job_waiting (queue_id, priority, created_at, job_id) WHERE ready;
CREATE INDEX job_waiting_due ON job_waiting (queue_id, run_at, job_id) WHERE NOT ready;

-- Leases by the page: one row for up to 64 jobs that were claimed together, with the end of each one's lease and which
-- attempt it is. The token is the page's number, so the token of a job rises with each of its claims.
-- nodes: nodes of graphs may be among them; false if certainly none is.
CREATE TABLE job_lease (
    token bigint NOT NULL,
    claimed_at timestamptz NOT NULL,
    -- The first lease in the page to end.
    expires_at timestamptz NOT NULL,
    queue_id integer NOT NULL,
    entries integer NOT NULL,
    nodes boolean NOT NULL,
    worker text NOT NULL,
    ids bigint[] NOT NULL,
    ends timestamptz[] NOT NULL,
    attempts integer[] NOT NULL,
    CONSTRAINT job_lease_pkey PRIMARY KEY (token),
    CONSTRAINT job_lease_entries CHECK (entries > 0 AND entries = cardinality(ids)
        AND entries = cardinality(ends) AND entries = cardinality(attempts))
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE INDEX job_lease_queue ON job_lease (queue_id, token);
CREATE INDEX job_lease_expiry ON job_lease (expires_at);
CREATE INDEX job_lease_nodes ON job_lease (queue_id, token) WHERE nodes;

-- How jobs ended.
CREATE TABLE job_end (
    id bigint NOT NULL,
    finished_at timestamptz NOT NULL,
    token bigint NOT NULL,
    attempts integer NOT NULL,
    status text NOT NULL,
    result json,
    last_error text,
    CONSTRAINT job_end_pkey PRIMARY KEY (id),
    CONSTRAINT job_end_status CHECK (status IN ('completed', 'failed'))
);

CREATE INDEX job_end_failed ON job_end (id) WHERE status = 'failed';
CREATE INDEX job_end_age ON job_end (status, finished_at);

-- What is worth remembering of a job that has not ended: its progress, and what went wrong last.
CREATE TABLE job_note (
    job_id bigint NOT NULL,
    progress json,
    last_error text,
    CONSTRAINT job_note_pkey PRIMARY KEY (job_id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Deduplication keys that are held. holds_until NULL: until the job has ended.
CREATE TABLE job_key (
    queue_id integer NOT NULL,
    key text NOT NULL,
    job_id bigint NOT NULL,
    holds_until timestamptz,
    CONSTRAINT job_key_pkey PRIMARY KEY (queue_id, key),
    CONSTRAINT job_key_length CHECK (length(key) BETWEEN 1 AND 255),
    CONSTRAINT job_key_window CHECK (holds_until < '9999-01-01')
);

CREATE INDEX job_key_job ON job_key (job_id);
CREATE INDEX job_key_passing ON job_key (holds_until) WHERE holds_until IS NOT NULL;

-- Every job with its status, for people.
CREATE VIEW work_queue AS
SELECT j.id, q.name AS queue, j.kind,
    CASE WHEN e.id IS NOT NULL THEN e.status WHEN l.token IS NOT NULL THEN 'running' ELSE 'queued' END AS status,
    j.priority, j.payload, coalesce(w.run_at, j.run_at, j.created_at) AS run_at,
    coalesce(e.attempts, l.attempt, w.attempts, 0) AS attempts,
    l.worker AS claimed_by, l.lease_expires_at, l.claimed_at AS started_at,
    coalesce(e.token, l.token, w.token, 0) AS token,
    j.created_at, e.finished_at, coalesce(e.last_error, n.last_error) AS last_error, e.result
FROM job j
JOIN queue q ON q.id = j.queue_id
LEFT JOIN job_end e ON e.id = j.id
LEFT JOIN job_waiting w ON w.job_id = j.id
LEFT JOIN job_note n ON n.job_id = j.id
LEFT JOIN (
    SELECT l.token, l.worker, l.claimed_at, i.id, i.lease_expires_at, i.attempt
    FROM job_lease l CROSS JOIN unnest(l.ids, l.ends, l.attempts) AS i (id, lease_expires_at, attempt)
) l ON l.id = j.id;

-- Whoever puts a job into a queue calls this once a statement; leasehold_wake (0008) explains it. It says whether it notified.
CREATE FUNCTION leasehold_job_wake() RETURNS boolean LANGUAGE sql AS $$
    SELECT CASE
        WHEN pg_catalog.pg_try_advisory_xact_lock_shared(7308332189)
            OR pg_catalog.current_setting('leasehold.notify', true) = 'off' THEN false
        ELSE pg_catalog.pg_notify('leasehold_job', '') IS NOT NULL
    END
$$;

-- Takes back jobs whose lease ended: queued again at once, or failed where their attempts are used up; a node's graph is told of that
-- by node_spent (0013). Pages that somebody writes are left to the next call. No page has its first end at or before p_from.
CREATE FUNCTION leasehold_job_expire(p_now timestamptz, p_from timestamptz, p_limit integer)
RETURNS TABLE (id bigint, token bigint, queue text, worker text, status text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := coalesce(p_now, clock_timestamp());
BEGIN
    RETURN QUERY
    WITH page AS MATERIALIZED (
        SELECT l.* FROM job_lease l
        WHERE l.expires_at > p_from AND l.expires_at <= moment
        ORDER BY l.expires_at LIMIT p_limit FOR UPDATE SKIP LOCKED
    ), entry AS MATERIALIZED (
        SELECT p.token, p.queue_id, p.worker, e.id, e.ends, e.attempt, e.place,
            e.ends <= moment AND row_number() OVER (ORDER BY e.ends, e.id) <= p_limit AS over
        FROM page p CROSS JOIN unnest(p.ids, p.ends, p.attempts) WITH ORDINALITY AS e (id, ends, attempt, place)
    ), rest AS (
        SELECT e.token, min(e.ends) AS expires_at, count(*)::integer AS entries, array_agg(e.id ORDER BY e.place) AS ids,
            array_agg(e.ends ORDER BY e.place) AS ends, array_agg(e.attempt ORDER BY e.place) AS attempts
        FROM entry e WHERE NOT e.over GROUP BY e.token
    ), kept AS (
        UPDATE job_lease l
        SET expires_at = r.expires_at, entries = r.entries, ids = r.ids, ends = r.ends, attempts = r.attempts
        FROM rest r WHERE l.token = r.token
    ), gone AS (
        DELETE FROM job_lease l USING page p
        WHERE l.token = p.token AND NOT EXISTS (SELECT FROM rest r WHERE r.token = p.token)
    ), expired AS MATERIALIZED (
        SELECT e.token, e.queue_id, e.worker, e.id, e.attempt, j.priority, j.created_at, j.execution_id, j.node, q.name,
            left('the lease of ' || e.worker || ' expired', 4000) AS error,
            e.attempt >= coalesce(j.max_attempts, q.max_attempts) AS exhausted
        FROM entry e JOIN job j ON j.id = e.id JOIN queue q ON q.id = e.queue_id
        WHERE e.over
    ), failed AS (
        INSERT INTO job_end (id, finished_at, token, attempts, status, last_error)
        SELECT x.id, moment, x.token, x.attempt, 'failed', x.error FROM expired x WHERE x.exhausted
    ), spent AS (
        INSERT INTO node_spent (execution_id, node, attempts, error)
        SELECT x.execution_id, x.node, x.attempt, x.error FROM expired x WHERE x.exhausted AND x.execution_id IS NOT NULL
        ON CONFLICT DO NOTHING
    ), unkeyed AS (
        DELETE FROM job_key k USING expired x WHERE x.exhausted AND k.job_id = x.id AND k.holds_until IS NULL
    ), unnoted AS (
        DELETE FROM job_note n USING expired x WHERE x.exhausted AND n.job_id = x.id
    ), requeued AS (
        INSERT INTO job_waiting (job_id, created_at, run_at, token, queue_id, attempts, priority, ready)
        SELECT x.id, x.created_at, moment, x.token, x.queue_id, x.attempt, x.priority, true
        FROM expired x WHERE NOT x.exhausted
    ), noted AS (
        INSERT INTO job_note (job_id, last_error) SELECT x.id, x.error FROM expired x WHERE NOT x.exhausted
        ON CONFLICT (job_id) DO UPDATE SET last_error = excluded.last_error
    )
    SELECT x.id, x.token, x.name, x.worker, CASE WHEN x.exhausted THEN 'failed' ELSE 'queued' END FROM expired x;
END
$$;

-- Claims up to p_max jobs of one queue. One claim of a queue at a time: it holds the queue's advisory lock until it is
-- committed, and so does whoever changes the queue's limit. Where all queues together have a limit, one claim of all at a time.
-- The first row has no id: it has the queue's settings, the end of the leases, whether a limit ended the claim, when the next
-- waiting job is due, and how many leases had expired. The others have what the jobs themselves say. p_expired_max 0: does not look for expired leases.
CREATE FUNCTION leasehold_job_claim(
    p_now timestamptz, p_queue integer, p_worker text, p_max integer, p_lease_us bigint, p_expired_from timestamptz,
    p_expired_max integer
) RETURNS TABLE (
    id bigint, token bigint, attempt integer, priority smallint, created_at timestamptz, kind text, payload json,
    max_attempts integer, backoff_base_us bigint, backoff_max_us bigint, backoff_factor double precision,
    backoff_jitter double precision, timeout_us bigint, trace_context text, progress json, last_error text,
    lease_us bigint, lease_expires_at timestamptz, at_limit boolean, next_due_us bigint, expired integer
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    about record;
    moment timestamptz;
    ends_at timestamptz;
    room integer;
    wanted integer := p_max;
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
BEGIN
    -- Shared: nobody changes the limit of all meanwhile.
    PERFORM pg_advisory_xact_lock_shared(730833, 0), pg_advisory_xact_lock(730834, p_queue);
    moment := coalesce(p_now, clock_timestamp());
    SELECT q.*, t.max_running AS total,
        p_expired_max > 0 AND EXISTS (
            SELECT FROM job_lease l WHERE l.expires_at > p_expired_from AND l.expires_at <= moment) AS some_expired,
        (SELECT w.run_at FROM job_waiting w
            WHERE w.queue_id = p_queue AND NOT w.ready ORDER BY w.run_at, w.job_id LIMIT 1) AS next_due
    INTO about FROM queue q CROSS JOIN job_limit t WHERE q.id = p_queue AND t.one;
    IF NOT FOUND OR about.paused THEN
        RETURN;
    END IF;
    IF about.total IS NOT NULL THEN
        PERFORM pg_advisory_xact_lock(730833, 1);
        moment := coalesce(p_now, clock_timestamp());
    END IF;
    ends_at := moment + coalesce(p_lease_us, about.lease_us) * interval '1 microsecond';
    next_due := about.next_due;

    IF about.some_expired THEN
        SELECT count(*) INTO freed FROM leasehold_job_expire(moment, p_expired_from, p_expired_max);
        IF freed > 0 THEN
            PERFORM leasehold_job_wake();
        END IF;
    END IF;
    IF about.max_running IS NOT NULL THEN
        SELECT about.max_running - coalesce(sum(l.entries), 0) INTO room FROM job_lease l WHERE l.queue_id = p_queue;
    END IF;
    IF about.total IS NOT NULL THEN
        SELECT least(room, about.total - coalesce(sum(l.entries), 0)) INTO room FROM job_lease l;
    END IF;
    wanted := greatest(least(p_max, room), 0);

    IF next_due <= moment THEN
        UPDATE job_waiting w SET ready = true
        FROM (
            SELECT d.job_id FROM job_waiting d
            WHERE d.queue_id = p_queue AND NOT d.ready AND d.run_at <= moment
            ORDER BY d.run_at, d.job_id LIMIT greatest(p_max, 1000) FOR UPDATE SKIP LOCKED
        ) d
        WHERE w.job_id = d.job_id;
        SELECT w.run_at INTO next_due FROM job_waiting w
        WHERE w.queue_id = p_queue AND NOT w.ready ORDER BY w.run_at, w.job_id LIMIT 1;
    END IF;

    -- Only the lines that may have something.
    FOR line IN
        SELECT n.priority, coalesce(c.version, 0) AS version, coalesce(c.at_xid, '0') AS at_xid, coalesce(c.at_id, 0) AS at_id,
            coalesce(c.late_xid, '{}') AS late_xid, coalesce(c.late_id, '{}') AS late_id, w.some IS NOT NULL AS some_waiting
        FROM job_line n
        LEFT JOIN LATERAL (
            SELECT c.* FROM job_cursor c WHERE c.queue_id = p_queue AND c.priority = n.priority
            ORDER BY c.version DESC LIMIT 1
        ) c ON true
        LEFT JOIN LATERAL (
            SELECT 1 AS some FROM job_waiting w WHERE w.queue_id = p_queue AND w.priority = n.priority AND w.ready LIMIT 1
        ) w ON true
        LEFT JOIN LATERAL (
            SELECT 1 AS some FROM job j
            WHERE j.queue_id = p_queue AND j.priority = n.priority AND j.run_at IS NULL
                AND (j.xid, j.id) > (coalesce(c.at_xid, '0'), coalesce(c.at_id, 0))
            ORDER BY j.xid, j.id LIMIT 1
        ) f ON true
        WHERE n.queue_id = p_queue AND wanted > 0
            AND (w.some IS NOT NULL OR cardinality(c.late_xid) > 0 OR f.some IS NOT NULL)
        ORDER BY n.priority DESC
    LOOP
        EXIT WHEN wanted <= 0;
        IF cardinality(line.late_xid) = 0 AND NOT line.some_waiting THEN
            SELECT pg_current_snapshot() AS seen, count(*)::integer AS found,
                array_agg(m.id) AS ids, array_agg(m.spot) AS spots, array_fill(1, ARRAY[count(*)::integer]) AS tries,
                bool_or(m.of_graph) AS some_nodes,
                NULL::bigint[] AS waiting, NULL::xid8[] AS late_xid, NULL::bigint[] AS late_id, NULL::xid8[] AS late_left,
                array_agg(m.xid) AS main_xid, array_agg(m.id) AS main_id
            INTO pick
            FROM (
                SELECT j.id, j.xid, j.ctid AS spot, j.node IS NOT NULL AS of_graph FROM job j
                WHERE j.queue_id = p_queue AND j.priority = line.priority AND j.run_at IS NULL
                    AND (j.xid, j.id) > (line.at_xid, line.at_id)
                ORDER BY j.xid, j.id LIMIT wanted
            ) m;
        ELSE
            -- Fresh jobs stay in the order of their line also where their times do not: a running highest time sorts them.
            WITH waiting AS (
                SELECT w.job_id, w.created_at, w.attempts FROM job_waiting w
                WHERE w.queue_id = p_queue AND w.priority = line.priority AND w.ready
                ORDER BY w.created_at, w.job_id LIMIT wanted FOR UPDATE SKIP LOCKED
            ), late AS (
                SELECT j.id, j.xid, j.created_at, j.spot, j.of_graph
                FROM unnest(line.late_xid, line.late_id) AS l (xid, id)
                CROSS JOIN LATERAL (
                    SELECT j.id, j.xid, j.created_at, j.ctid AS spot, j.node IS NOT NULL AS of_graph FROM job j
                    WHERE j.queue_id = p_queue AND j.priority = line.priority AND j.run_at IS NULL
                        AND (j.xid, j.id) > (l.xid, l.id) AND j.xid <= l.xid
                    ORDER BY j.xid, j.id LIMIT wanted
                ) j
            ), main AS (
                SELECT j.id, j.xid, j.created_at, j.ctid AS spot, j.node IS NOT NULL AS of_graph FROM job j
                WHERE j.queue_id = p_queue AND j.priority = line.priority AND j.run_at IS NULL
                    AND (j.xid, j.id) > (line.at_xid, line.at_id)
                ORDER BY j.xid, j.id LIMIT wanted
            ), taken AS (
                SELECT w.job_id AS id, NULL::xid8 AS xid, 0 AS source, w.created_at AS at, w.job_id AS at_id,
                    w.attempts + 1 AS try, j.spot, j.of_graph
                FROM waiting w
                LEFT JOIN LATERAL (
                    SELECT j.ctid AS spot, j.node IS NOT NULL AS of_graph FROM job j WHERE j.id = w.job_id LIMIT 1
                ) j ON true
                UNION ALL
                SELECT l.id, l.xid, 1, max(l.created_at) OVER by_line, max(l.id) OVER by_line, 1, l.spot, l.of_graph
                FROM late l WINDOW by_line AS (ORDER BY l.xid, l.id)
                UNION ALL
                SELECT m.id, m.xid, 2, max(m.created_at) OVER by_line, max(m.id) OVER by_line, 1, m.spot, m.of_graph
                FROM main m WINDOW by_line AS (ORDER BY m.xid, m.id)
                ORDER BY at, at_id, xid, id LIMIT wanted
            )
            SELECT pg_current_snapshot() AS seen, count(*)::integer AS found,
                array_agg(t.id) AS ids, array_agg(t.spot) AS spots, array_agg(t.try) AS tries,
                bool_or(t.of_graph) AS some_nodes, array_agg(t.id) FILTER (WHERE t.source = 0) AS waiting,
                array_agg(t.xid) FILTER (WHERE t.source = 1) AS late_xid, array_agg(t.id) FILTER (WHERE t.source = 1) AS late_id,
                ARRAY(SELECT l.xid FROM late l GROUP BY l.xid
                    HAVING count(*) >= wanted OR bool_or(l.id NOT IN (SELECT u.id FROM taken u))) AS late_left,
                array_agg(t.xid) FILTER (WHERE t.source = 2) AS main_xid, array_agg(t.id) FILTER (WHERE t.source = 2) AS main_id
            INTO pick FROM taken t;
        END IF;

        IF pick.main_id IS NOT NULL OR cardinality(line.late_xid) > 0 THEN
            to_xid := coalesce(pick.main_xid[cardinality(pick.main_xid)], line.at_xid);
            late_xids := '{}';
            late_ids := '{}';
            IF cardinality(line.late_xid) > 0 OR pg_snapshot_xmin(pick.seen) < to_xid THEN
                -- A passed transaction is done with when it has ended and nothing of it is left.
                SELECT coalesce(array_agg(l.xid), '{}'), coalesce(array_agg(l.id), '{}') INTO late_xids, late_ids
                FROM (
                    SELECT l.xid, coalesce(t.id, l.id) AS id
                    FROM unnest(line.late_xid, line.late_id) AS l (xid, id)
                    LEFT JOIN (
                        SELECT t.xid, max(t.id) AS id FROM unnest(pick.late_xid, pick.late_id) AS t (xid, id) GROUP BY t.xid
                    ) t ON t.xid = l.xid
                    WHERE l.xid = ANY (pick.late_left) OR NOT pg_visible_in_snapshot(l.xid, pick.seen)
                    UNION ALL
                    SELECT x.xid, 0 FROM pg_snapshot_xip(pick.seen) AS x (xid) WHERE x.xid > line.at_xid AND x.xid < to_xid
                ) l;
            END IF;
            IF pick.main_id IS NOT NULL OR late_xids <> line.late_xid OR late_ids <> line.late_id THEN
                WITH gone AS (
                    DELETE FROM job_cursor c
                    WHERE c.queue_id = p_queue AND c.priority = line.priority AND c.version = line.version
                )
                INSERT INTO job_cursor (queue_id, priority, version, at_xid, at_id, late_xid, late_id)
                VALUES (p_queue, line.priority, line.version + 1, to_xid,
                    coalesce(pick.main_id[cardinality(pick.main_id)], line.at_id), late_xids, late_ids);
            END IF;
        END IF;
        IF pick.waiting IS NOT NULL THEN
            DELETE FROM job_waiting w WHERE w.job_id = ANY (pick.waiting);
        END IF;
        IF pick.found > 0 THEN
            picked := picked || pick.ids;
            spots := spots || pick.spots;
            tries := tries || pick.tries;
            some_nodes := some_nodes OR pick.some_nodes;
            wanted := wanted - pick.found;
        END IF;
    END LOOP;

    RETURN QUERY
    WITH page AS (
        INSERT INTO job_lease AS l (token, claimed_at, expires_at, queue_id, entries, nodes, worker, ids, ends, attempts)
        SELECT nextval('job_token'), moment, ends_at, p_queue, p.entries, some_nodes, p_worker,
            picked[p.first:p.first + 63], array_fill(ends_at, ARRAY[p.entries]), tries[p.first:p.first + 63]
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
        about.backoff_jitter, about.timeout_us, NULL::text, NULL::json, NULL::text,
        coalesce(p_lease_us, about.lease_us), ends_at, coalesce(room < p_max AND cardinality(picked) >= room, false),
        CASE WHEN cardinality(picked) < p_max THEN (extract(epoch FROM next_due - moment) * 1000000)::bigint END, freed
    UNION ALL
    SELECT j.id, n.token, e.attempt, j.priority, j.created_at, j.kind, j.payload, j.max_attempts, j.backoff_base_us,
        j.backoff_max_us, j.backoff_factor, j.backoff_jitter, j.timeout_us, j.trace_context, o.progress, o.last_error,
        NULL::bigint, NULL::timestamptz, NULL::boolean, NULL::bigint, NULL::integer
    FROM numbered n
    CROSS JOIN LATERAL unnest(spots[n.number * 64 + 1:n.number * 64 + 64], tries[n.number * 64 + 1:n.number * 64 + 64])
        AS e (spot, attempt)
    JOIN job j ON j.ctid = e.spot
    LEFT JOIN LATERAL (SELECT o.progress, o.last_error FROM job_note o WHERE o.job_id = j.id LIMIT 1) o ON true;
END
$$;

-- Ends claims that p_worker holds. Those of the page p_pages[i] begin at p_first[i] of the other arrays: which jobs, what each
-- becomes (completed, failed, queued), with its result, error, wait, and whether the attempt is given back. p_plain: all are
-- completed, without results. Returns the claims that were held. Each page is locked first, and then the clock is read.
-- p_nodes: the caller brings their graphs on; else those of nodes stay as they are and are returned as of_graph.
CREATE FUNCTION leasehold_job_finish(
    p_now timestamptz, p_worker text, p_pages bigint[], p_first integer[], p_ids bigint[], p_plain boolean, p_becomes text[],
    p_results json[], p_errors text[], p_waits_us bigint[], p_uncounted boolean[], p_nodes boolean
) RETURNS TABLE (id bigint, token bigint, becomes text, run_at timestamptz) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    page job_lease;
    settings queue;
    moment timestamptz;
    low integer;
    high integer;
    given bigint[];
    refused bigint[];
    done bigint[] := '{}';
    wakes boolean := false;
    held record;
BEGIN
    FOR i IN 1..cardinality(p_pages) LOOP
        SELECT l.* INTO page FROM job_lease l WHERE l.token = p_pages[i] AND l.worker = p_worker FOR UPDATE;
        CONTINUE WHEN NOT FOUND;
        moment := coalesce(p_now, clock_timestamp());
        low := p_first[i];
        high := coalesce(p_first[i + 1] - 1, cardinality(p_ids));
        given := p_ids[low:high];
        IF settings.id IS DISTINCT FROM page.queue_id THEN
            SELECT q.* INTO settings FROM queue q WHERE q.id = page.queue_id;
        END IF;
        wakes := wakes OR settings.max_running IS NOT NULL;
        refused := NULL;
        IF page.nodes AND NOT p_nodes THEN
            SELECT array_agg(j.id) INTO refused FROM job j WHERE j.id = ANY (given) AND j.node IS NOT NULL;
            RETURN QUERY SELECT e.id, page.token, 'of_graph', NULL::timestamptz
            FROM unnest(page.ids, page.ends) AS e (id, ends) WHERE e.id = ANY (refused) AND e.ends > moment;
        END IF;
        IF p_plain AND page.expires_at > moment AND refused IS NULL AND (page.ids = given OR page.ids <@ given) THEN
            -- All that is left of the page: the usual case.
            DELETE FROM job_lease l WHERE l.token = page.token;
            IF settings.keep_completed THEN
                INSERT INTO job_end (id, finished_at, token, attempts, status, last_error)
                SELECT e.id, moment, page.token, e.attempt, 'completed',
                    (SELECT n.last_error FROM job_note n WHERE n.job_id = e.id)
                FROM unnest(page.ids, page.attempts) AS e (id, attempt);
            ELSE
                DELETE FROM job j WHERE j.id = ANY (page.ids);
            END IF;
            done := done || page.ids;
            RETURN QUERY SELECT e.id, page.token, NULL::text, NULL::timestamptz FROM unnest(page.ids) AS e (id);
            CONTINUE;
        END IF;

        FOR held IN
            WITH entry AS MATERIALIZED (
                SELECT e.id, e.ends, e.attempt, e.place, g.place AS asked,
                    g.place IS NOT NULL AND e.ends > moment AND (refused IS NULL OR e.id <> ALL (refused)) AS owned
                FROM unnest(page.ids, page.ends, page.attempts) WITH ORDINALITY AS e (id, ends, attempt, place)
                LEFT JOIN unnest(given) WITH ORDINALITY AS g (id, place) ON g.id = e.id
            ), rest AS (
                SELECT min(e.ends) AS expires_at, count(*)::integer AS entries, array_agg(e.id ORDER BY e.place) AS ids,
                    array_agg(e.ends ORDER BY e.place) AS ends, array_agg(e.attempt ORDER BY e.place) AS attempts
                FROM entry e WHERE NOT e.owned
            ), kept AS (
                UPDATE job_lease l
                SET expires_at = r.expires_at, entries = r.entries, ids = r.ids, ends = r.ends, attempts = r.attempts
                FROM rest r WHERE l.token = page.token AND r.entries > 0 AND r.entries < page.entries
            ), gone AS (
                DELETE FROM job_lease l USING rest r WHERE l.token = page.token AND r.entries = 0
            ), owned AS MATERIALIZED (
                SELECT e.id, e.attempt, CASE WHEN p_plain THEN 'completed' ELSE p_becomes[low - 1 + e.asked] END AS becomes,
                    p_results[low - 1 + e.asked] AS result, p_errors[low - 1 + e.asked] AS error,
                    moment + p_waits_us[low - 1 + e.asked] * interval '1 microsecond' AS run_at,
                    p_uncounted[low - 1 + e.asked] AS uncounted
                FROM entry e WHERE e.owned
            ), ended AS (
                INSERT INTO job_end (id, finished_at, token, attempts, status, result, last_error)
                SELECT o.id, moment, page.token, o.attempt, o.becomes, o.result,
                    coalesce(o.error, (SELECT n.last_error FROM job_note n WHERE n.job_id = o.id))
                FROM owned o WHERE o.becomes = 'failed' OR (o.becomes = 'completed' AND settings.keep_completed)
            ), discarded AS (
                DELETE FROM job j
                WHERE NOT settings.keep_completed AND j.id = ANY (ARRAY(SELECT o.id FROM owned o WHERE o.becomes = 'completed'))
            ), requeued AS (
                INSERT INTO job_waiting (job_id, created_at, run_at, token, queue_id, attempts, priority, ready)
                SELECT o.id, j.created_at, o.run_at, page.token, page.queue_id, o.attempt - o.uncounted::integer, j.priority,
                    o.run_at <= moment
                FROM owned o CROSS JOIN LATERAL (SELECT j.* FROM job j WHERE j.id = o.id LIMIT 1) j
                WHERE o.becomes = 'queued'
            ), noted AS (
                INSERT INTO job_note (job_id, last_error)
                SELECT o.id, o.error FROM owned o WHERE o.becomes = 'queued' AND o.error IS NOT NULL
                ON CONFLICT (job_id) DO UPDATE SET last_error = excluded.last_error
            )
            SELECT o.id, o.becomes, o.run_at FROM owned o
        LOOP
            IF held.becomes = 'queued' THEN
                wakes := true;
            ELSE
                done := done || held.id;
            END IF;
            id := held.id;
            token := page.token;
            becomes := held.becomes;
            run_at := held.run_at;
            RETURN NEXT;
        END LOOP;
    END LOOP;
    IF cardinality(done) > 0 THEN
        DELETE FROM job_key k WHERE k.job_id = ANY (done) AND k.holds_until IS NULL;
        DELETE FROM job_note n WHERE n.job_id = ANY (done);
    END IF;
    IF wakes OR (SELECT l.max_running IS NOT NULL FROM job_limit l) THEN
        PERFORM leasehold_job_wake();
    END IF;
END
$$;

-- Extends leases that p_worker holds and returns their jobs; pages and jobs are given as to leasehold_job_finish.
CREATE FUNCTION leasehold_job_renew(
    p_now timestamptz, p_worker text, p_pages bigint[], p_first integer[], p_ids bigint[], p_lease_us bigint
) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
DECLARE
    page job_lease;
    moment timestamptz;
    ends_at timestamptz;
    given bigint[];
BEGIN
    FOR i IN 1..cardinality(p_pages) LOOP
        SELECT l.* INTO page FROM job_lease l WHERE l.token = p_pages[i] AND l.worker = p_worker FOR UPDATE;
        CONTINUE WHEN NOT FOUND;
        moment := coalesce(p_now, clock_timestamp());
        ends_at := moment + p_lease_us * interval '1 microsecond';
        given := p_ids[p_first[i]:coalesce(p_first[i + 1] - 1, cardinality(p_ids))];
        UPDATE job_lease l SET ends = r.ends, expires_at = r.expires_at
        FROM (
            SELECT array_agg(n.ends ORDER BY n.place) AS ends, min(n.ends) AS expires_at
            FROM (
                SELECT e.place, CASE WHEN e.ends > moment AND e.id = ANY (given) THEN ends_at ELSE e.ends END AS ends
                FROM unnest(page.ids, page.ends) WITH ORDINALITY AS e (id, ends, place)
            ) n
        ) r
        WHERE l.token = page.token;
        RETURN QUERY SELECT e.id FROM unnest(page.ids, page.ends) AS e (id, ends) WHERE e.ends > moment AND e.id = ANY (given);
    END LOOP;
END
$$;

-- Keeps what p_worker says of a job's progress; false if the lease is lost.
CREATE FUNCTION leasehold_job_progress(p_now timestamptz, p_worker text, p_token bigint, p_id bigint, p_progress json)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    page job_lease;
BEGIN
    SELECT l.* INTO page FROM job_lease l WHERE l.token = p_token AND l.worker = p_worker FOR UPDATE;
    IF NOT coalesce(page.ends[array_position(page.ids, p_id)] > coalesce(p_now, clock_timestamp()), false) THEN
        RETURN false;
    END IF;
    INSERT INTO job_note (job_id, progress) VALUES (p_id, p_progress)
    ON CONFLICT (job_id) DO UPDATE SET progress = excluded.progress;
    RETURN true;
END
$$;

-- Says which of: cancelled, running, finished, of_graph, not_found.
CREATE FUNCTION leasehold_job_cancel(p_now timestamptz, p_id bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    asked job;
    waited job_waiting;
    moment timestamptz;
BEGIN
    SELECT j.* INTO asked FROM job j WHERE j.id = p_id;
    IF asked.id IS NULL THEN
        RETURN 'not_found';
    END IF;
    IF asked.node IS NOT NULL AND NOT EXISTS (SELECT FROM job_end e WHERE e.id = p_id) THEN
        RETURN 'of_graph';
    END IF;
    -- From here on no claim takes it, so what is looked for in this order is not missed.
    PERFORM pg_advisory_xact_lock(730834, asked.queue_id);
    moment := coalesce(p_now, clock_timestamp());
    IF EXISTS (SELECT FROM job_lease l WHERE l.queue_id = asked.queue_id AND p_id = ANY (l.ids)) THEN
        RETURN 'running';
    END IF;
    DELETE FROM job_waiting w WHERE w.job_id = p_id RETURNING w.* INTO waited;
    IF waited.job_id IS NULL THEN
        IF EXISTS (SELECT FROM job_end e WHERE e.id = p_id) THEN
            RETURN 'finished';
        END IF;
        -- Out of the line: the one change a job's row ever sees.
        UPDATE job j SET run_at = j.created_at WHERE j.id = p_id AND j.run_at IS NULL;
        IF NOT FOUND THEN
            RETURN 'not_found';
        END IF;
    END IF;
    INSERT INTO job_end (id, finished_at, token, attempts, status, last_error)
    VALUES (p_id, moment, coalesce(waited.token, 0), coalesce(waited.attempts, 0), 'failed', 'cancelled');
    DELETE FROM job_key k WHERE k.job_id = p_id AND k.holds_until IS NULL;
    DELETE FROM job_note n WHERE n.job_id = p_id;
    RETURN 'cancelled';
END
$$;

-- After the rows came into another cluster, by a restored dump or by replication, the transaction numbers in them mean
-- nothing. Fresh jobs then wait like those that were tried before, and lines begin anew. Every process calls it before its first
-- claim and once a minute.
CREATE FUNCTION leasehold_job_settle_in() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    here bigint := (SELECT system_identifier FROM pg_control_system());
BEGIN
    -- A cursor from the future is another sign.
    IF here = (SELECT cluster FROM job_limit)
        AND NOT EXISTS (SELECT FROM job_cursor c WHERE c.at_xid >= pg_snapshot_xmax(pg_current_snapshot()))
    THEN
        RETURN false;
    END IF;
    PERFORM pg_advisory_xact_lock(730833, 0);
    LOCK TABLE job, job_waiting, job_lease, job_end IN SHARE ROW EXCLUSIVE MODE;
    IF here = (SELECT cluster FROM job_limit)
        AND NOT EXISTS (SELECT FROM job_cursor c WHERE c.at_xid >= pg_snapshot_xmax(pg_current_snapshot()))
    THEN
        RETURN false;
    END IF;
    INSERT INTO job_waiting (job_id, created_at, run_at, queue_id, priority, ready)
    SELECT j.id, j.created_at, j.created_at, j.queue_id, j.priority, true
    FROM job j
    WHERE j.run_at IS NULL
        AND NOT EXISTS (SELECT FROM job_end e WHERE e.id = j.id)
        AND NOT EXISTS (SELECT FROM job_waiting w WHERE w.job_id = j.id)
        AND j.id NOT IN (SELECT unnest(l.ids) FROM job_lease l);
    UPDATE job j SET run_at = j.created_at WHERE j.run_at IS NULL;
    DELETE FROM job_cursor;
    UPDATE job_limit SET cluster = here;
    RETURN true;
END
$$;

-- Puts a job into a queue within the caller's transaction, and returns its id, or the id of the job that holds the key.
CREATE FUNCTION leasehold_job_enqueue(
    queue text,
    kind text,
    payload json DEFAULT 'null',
    priority integer DEFAULT 0,
    run_at timestamptz DEFAULT NULL,
    dedup_key text DEFAULT NULL,
    dedup_window interval DEFAULT NULL,
    max_attempts integer DEFAULT NULL,
    timeout interval DEFAULT NULL,
    trace_context text DEFAULT NULL
) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := clock_timestamp();
    in_queue integer;
    at timestamptz := CASE WHEN leasehold_job_enqueue.run_at > moment THEN leasehold_job_enqueue.run_at END;
    new_id bigint := nextval('job_id');
    holder bigint;
BEGIN
    IF octet_length(leasehold_job_enqueue.payload::text) > 262144 THEN
        RAISE EXCEPTION 'the payload must have at most 262144 bytes as JSON, has %',
            octet_length(leasehold_job_enqueue.payload::text) USING ERRCODE = 'program_limit_exceeded';
    END IF;
    IF leasehold_job_enqueue.queue ~ '[[:cntrl:]]' OR leasehold_job_enqueue.kind ~ '[[:cntrl:]]' THEN
        RAISE EXCEPTION 'the names of a queue and a kind must not contain control characters'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF leasehold_job_enqueue.max_attempts <= 0 OR leasehold_job_enqueue.max_attempts > 32767 THEN
        RAISE EXCEPTION 'max_attempts must be between 1 and 32767, not %', leasehold_job_enqueue.max_attempts
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF leasehold_job_enqueue.timeout <= interval '0' THEN
        RAISE EXCEPTION 'the timeout must be more than nothing' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT q.id INTO in_queue FROM queue q WHERE q.name = leasehold_job_enqueue.queue;
    IF NOT FOUND THEN
        INSERT INTO queue (name) VALUES (leasehold_job_enqueue.queue) ON CONFLICT (name) DO NOTHING;
        SELECT q.id INTO in_queue FROM queue q WHERE q.name = leasehold_job_enqueue.queue;
    END IF;
    IF NOT EXISTS (SELECT FROM job_line l WHERE l.queue_id = in_queue AND l.priority = leasehold_job_enqueue.priority) THEN
        INSERT INTO job_line (queue_id, priority) VALUES (in_queue, leasehold_job_enqueue.priority) ON CONFLICT DO NOTHING;
    END IF;
    IF leasehold_job_enqueue.dedup_key IS NOT NULL THEN
        DELETE FROM job_key k
        WHERE k.queue_id = in_queue AND k.key = leasehold_job_enqueue.dedup_key AND k.holds_until <= moment;
        INSERT INTO job_key AS k (queue_id, key, job_id, holds_until)
        VALUES (in_queue, leasehold_job_enqueue.dedup_key, new_id, moment + leasehold_job_enqueue.dedup_window)
        ON CONFLICT (queue_id, key) DO NOTHING;
        IF NOT FOUND THEN
            SELECT k.job_id INTO holder FROM job_key k
            WHERE k.queue_id = in_queue AND k.key = leasehold_job_enqueue.dedup_key;
            IF holder IS NULL THEN
                RAISE EXCEPTION 'deduplication key "%" was just given up; try again', leasehold_job_enqueue.dedup_key
                    USING ERRCODE = 'serialization_failure';
            END IF;
            RETURN holder;
        END IF;
    END IF;
    INSERT INTO job (id, created_at, run_at, timeout_us, queue_id, max_attempts, priority, kind, payload, trace_context)
    VALUES (new_id, moment, at, (extract(epoch FROM leasehold_job_enqueue.timeout) * 1000000)::bigint, in_queue,
        leasehold_job_enqueue.max_attempts, leasehold_job_enqueue.priority, leasehold_job_enqueue.kind,
        coalesce(leasehold_job_enqueue.payload, 'null'), left(leasehold_job_enqueue.trace_context, 1024));
    IF at IS NOT NULL THEN
        INSERT INTO job_waiting (job_id, created_at, run_at, queue_id, priority, ready)
        VALUES (new_id, moment, at, in_queue, leasehold_job_enqueue.priority, false);
    END IF;
    PERFORM leasehold_job_wake();
    RETURN new_id;
END
$$;

REVOKE ALL ON FUNCTION leasehold_job_enqueue FROM PUBLIC;

-- As in 0006: this one is called by others, and sees the tables of this schema only, through their indexes. The other functions are called
-- by the store, whose sessions have these settings, and as often as every job: setting them anew each time costs a quarter of a claim.
DO $$
DECLARE
    function regprocedure := 'leasehold_job_enqueue'::regproc;
BEGIN
    EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', function, current_schema());
    EXECUTE format('ALTER FUNCTION %s SET enable_seqscan = off', function);
    EXECUTE format('ALTER FUNCTION %s SET enable_bitmapscan = off', function);
END
$$;
