-- The WorkQueue: jobs, their leases and their ends. docs/adr/0005-the-workqueue.md explains the design.
-- compatible_from: 5

-- owner_id: the workspace that owns the queue; NULL is the installation. docs/adr/0020-queue-ownership.md explains the rules.
CREATE TABLE {schema}.queue (
    id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
    name text NOT NULL,
    max_running integer,
    paused boolean NOT NULL DEFAULT false,
    keep_completed boolean NOT NULL DEFAULT true,
    lease_us bigint NOT NULL DEFAULT 30000000,
    max_attempts integer NOT NULL DEFAULT 25,
    -- First and longest wait in microseconds, the factor for each further failure, and the random fraction.
    backoff_base_us bigint NOT NULL DEFAULT 1000000,
    backoff_max_us bigint NOT NULL DEFAULT 300000000,
    backoff_factor double precision NOT NULL DEFAULT 2,
    backoff_jitter double precision NOT NULL DEFAULT 0.2,
    timeout_us bigint,
    owner_id uuid,
    shared_with_all boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT queue_pkey PRIMARY KEY (id),
    CONSTRAINT queue_name UNIQUE (name),
    CONSTRAINT queue_name_length CHECK (length(name) BETWEEN 1 AND 128),
    CONSTRAINT queue_limit CHECK (max_running >= 0),
    CONSTRAINT queue_lease CHECK (lease_us > 0),
    CONSTRAINT queue_attempts CHECK (max_attempts > 0),
    CONSTRAINT queue_timeout CHECK (timeout_us > 0),
    CONSTRAINT queue_owner FOREIGN KEY (owner_id) REFERENCES {schema}.workspace (id)
);

CREATE INDEX queue_of_owner ON {schema}.queue (owner_id) WHERE owner_id IS NOT NULL;

-- The workspaces with which a queue is shared. Rows of deleted workspaces stay: their running executions continue.
CREATE TABLE {schema}.queue_share (
    queue_id integer NOT NULL,
    workspace_id uuid NOT NULL,
    CONSTRAINT queue_share_pkey PRIMARY KEY (queue_id, workspace_id),
    CONSTRAINT queue_share_queue FOREIGN KEY (queue_id) REFERENCES {schema}.queue (id),
    CONSTRAINT queue_share_workspace FOREIGN KEY (workspace_id) REFERENCES {schema}.workspace (id)
);

-- One row: the limit of all queues together.
CREATE TABLE {schema}.job_limit (
    one boolean NOT NULL DEFAULT true,
    max_running integer,
    CONSTRAINT job_limit_pkey PRIMARY KEY (one),
    CONSTRAINT job_limit_one CHECK (one),
    CONSTRAINT job_limit_limit CHECK (max_running >= 0)
);

INSERT INTO {schema}.job_limit DEFAULT VALUES;

CREATE SEQUENCE {schema}.job_id;
CREATE SEQUENCE {schema}.job_token;

-- Jobs as enqueued. Rows are not updated (except on cancellation), so they leave no dead versions. The status of a job is
-- given by exactly one of job_waiting, job_lease and job_end. A job in none of them is fresh: run_at is NULL and it is beyond
-- the cursor of its line. node: the index of the node in the graph of execution_id.
-- xid: the number of the transaction that enqueued the job, plus the job_xid_offset of the epoch.
CREATE TABLE {schema}.job (
    id bigint NOT NULL DEFAULT nextval('{schema}.job_id'),
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- NULL: runs at once.
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
    -- PostgreSQL accepts times that other programs cannot represent.
    CONSTRAINT job_run_at CHECK (run_at < '9999-01-01')
);

-- A line: the fresh jobs of a queue with one priority, in the order of the transactions that enqueued them.
CREATE INDEX job_fresh ON {schema}.job (queue_id, priority, xid, id) WHERE run_at IS NULL;
-- For lists of a queue; job_fresh has the jobs without run_at.
CREATE INDEX job_scheduled ON {schema}.job (queue_id, id) WHERE run_at IS NOT NULL;

-- The lines that exist. Rows are never updated or deleted. queue: the name of the queue, which an enqueue compares: a process may have the id of a
-- queue whose creation was lost by a failover.
CREATE TABLE {schema}.job_line (
    queue_id integer NOT NULL,
    priority smallint NOT NULL,
    queue text NOT NULL,
    CONSTRAINT job_line_pkey PRIMARY KEY (queue_id, priority)
);

-- How far a line has been claimed. A claim inserts the next version, deletes the last, and reads the highest, so that it does
-- not scan the dead versions that an old snapshot keeps.
-- late_xid: transactions before the cursor that were in progress when it passed them; late_id: how far each has been claimed.
CREATE TABLE {schema}.job_cursor (
    queue_id integer NOT NULL,
    priority smallint NOT NULL,
    version bigint NOT NULL,
    at_xid xid8 NOT NULL,
    at_id bigint NOT NULL,
    late_xid xid8[] NOT NULL,
    late_id bigint[] NOT NULL,
    CONSTRAINT job_cursor_pkey PRIMARY KEY (queue_id, priority, version)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Queued jobs that are not fresh: scheduled, retried or returned.
CREATE TABLE {schema}.job_waiting (
    job_id bigint NOT NULL,
    created_at timestamptz NOT NULL,
    run_at timestamptz NOT NULL,
    token bigint NOT NULL DEFAULT 0,
    queue_id integer NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    priority smallint NOT NULL,
    -- Whether the job was due at the last claim.
    ready boolean NOT NULL,
    CONSTRAINT job_waiting_pkey PRIMARY KEY (job_id),
    CONSTRAINT job_waiting_run_at CHECK (run_at < '9999-01-01')
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE INDEX job_waiting_ready ON {schema}.job_waiting (queue_id, priority, created_at, job_id) WHERE ready;
CREATE INDEX job_waiting_due ON {schema}.job_waiting (queue_id, run_at, job_id) WHERE NOT ready;

-- Pages of leases: one row for up to 64 jobs that were claimed together, with the expiry and the attempt of each. The token
-- identifies the page and rises, so the token of a job rises with each of its claims.
-- nodes: whether nodes of graphs may be among the jobs.
CREATE TABLE {schema}.job_lease (
    token bigint NOT NULL,
    claimed_at timestamptz NOT NULL,
    -- The earliest expiry in the page.
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

CREATE INDEX job_lease_queue ON {schema}.job_lease (queue_id, token);
CREATE INDEX job_lease_expiry ON {schema}.job_lease (expires_at);
CREATE INDEX job_lease_nodes ON {schema}.job_lease (queue_id, token) WHERE nodes;

-- Ended jobs.
CREATE TABLE {schema}.job_end (
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

CREATE INDEX job_end_failed ON {schema}.job_end (id) WHERE status = 'failed';
CREATE INDEX job_end_age ON {schema}.job_end (status, finished_at);

-- Progress and last error of jobs that have not ended.
CREATE TABLE {schema}.job_note (
    job_id bigint NOT NULL,
    progress json,
    last_error text,
    CONSTRAINT job_note_pkey PRIMARY KEY (job_id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Deduplication keys in use. holds_until NULL: until the job has ended.
CREATE TABLE {schema}.job_key (
    queue_id integer NOT NULL,
    key text NOT NULL,
    job_id bigint NOT NULL,
    holds_until timestamptz,
    CONSTRAINT job_key_pkey PRIMARY KEY (queue_id, key),
    CONSTRAINT job_key_length CHECK (length(key) BETWEEN 1 AND 255),
    CONSTRAINT job_key_window CHECK (holds_until < '9999-01-01')
);

CREATE INDEX job_key_job ON {schema}.job_key (job_id);
CREATE INDEX job_key_passing ON {schema}.job_key (holds_until) WHERE holds_until IS NOT NULL;

-- Every job with its status, for ad hoc queries.
CREATE VIEW {schema}.work_queue AS
SELECT j.id, q.name AS queue, j.kind,
    CASE WHEN e.id IS NOT NULL THEN e.status WHEN l.token IS NOT NULL THEN 'running' ELSE 'queued' END AS status,
    j.priority, j.payload, coalesce(w.run_at, j.run_at, j.created_at) AS run_at,
    coalesce(e.attempts, l.attempt, w.attempts, 0) AS attempts,
    l.worker AS claimed_by, l.lease_expires_at, l.claimed_at AS started_at,
    coalesce(e.token, l.token, w.token, 0) AS token,
    j.created_at, e.finished_at, coalesce(e.last_error, n.last_error) AS last_error, e.result
FROM {schema}.job j
JOIN {schema}.queue q ON q.id = j.queue_id
LEFT JOIN {schema}.job_end e ON e.id = j.id
LEFT JOIN {schema}.job_waiting w ON w.job_id = j.id
LEFT JOIN {schema}.job_note n ON n.job_id = j.id
LEFT JOIN (
    SELECT l.token, l.worker, l.claimed_at, i.id, i.lease_expires_at, i.attempt
    FROM {schema}.job_lease l CROSS JOIN unnest(l.ids, l.ends, l.attempts) AS i (id, lease_expires_at, attempt)
) l ON l.id = j.id;
