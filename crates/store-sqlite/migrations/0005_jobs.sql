-- The WorkQueue: jobs, their leases and their ends. docs/adr/0005-the-workqueue.md explains the design.
-- compatible_from: 5

-- Durations and times are in microseconds.
-- owner_id: the workspace that owns the queue; NULL is the installation. docs/adr/0020-queue-ownership.md explains the rules.
CREATE TABLE queue (
    id INTEGER NOT NULL,
    name TEXT NOT NULL,
    max_running INTEGER,
    paused INTEGER NOT NULL DEFAULT 0,
    keep_completed INTEGER NOT NULL DEFAULT 1,
    lease_us INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    backoff_base_us INTEGER NOT NULL,
    backoff_factor REAL NOT NULL,
    backoff_max_us INTEGER NOT NULL,
    backoff_jitter REAL NOT NULL,
    timeout_us INTEGER,
    owner_id BLOB,
    shared_with_all INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    CONSTRAINT queue_pkey PRIMARY KEY (id),
    CONSTRAINT queue_name UNIQUE (name),
    CONSTRAINT queue_name_length CHECK (length(name) BETWEEN 1 AND 128),
    CONSTRAINT queue_limit CHECK (max_running BETWEEN 0 AND 1000000),
    CONSTRAINT queue_paused CHECK (paused IN (0, 1)),
    CONSTRAINT queue_keep_completed CHECK (keep_completed IN (0, 1)),
    CONSTRAINT queue_lease CHECK (lease_us > 0),
    CONSTRAINT queue_attempts CHECK (max_attempts BETWEEN 1 AND 32767),
    CONSTRAINT queue_backoff CHECK (backoff_base_us >= 0 AND backoff_max_us >= 0 AND backoff_jitter BETWEEN 0 AND 1),
    CONSTRAINT queue_timeout CHECK (timeout_us > 0),
    CONSTRAINT queue_shared_with_all CHECK (shared_with_all IN (0, 1)),
    CONSTRAINT queue_owner FOREIGN KEY (owner_id) REFERENCES workspace (id)
) STRICT;

CREATE INDEX queue_of_owner ON queue (owner_id) WHERE owner_id IS NOT NULL;

-- The workspaces with which a queue is shared. Rows of deleted workspaces stay: their running executions continue.
CREATE TABLE queue_share (
    queue_id INTEGER NOT NULL,
    workspace_id BLOB NOT NULL,
    CONSTRAINT queue_share_pkey PRIMARY KEY (queue_id, workspace_id),
    CONSTRAINT queue_share_queue FOREIGN KEY (queue_id) REFERENCES queue (id),
    CONSTRAINT queue_share_workspace FOREIGN KEY (workspace_id) REFERENCES workspace (id)
) STRICT, WITHOUT ROWID;

CREATE INDEX queue_share_of_workspace ON queue_share (workspace_id);

-- The limit on running jobs of all queues; NULL is no limit.
CREATE TABLE job_limit (
    id INTEGER NOT NULL DEFAULT 1,
    max_running INTEGER,
    CONSTRAINT job_limit_pkey PRIMARY KEY (id),
    CONSTRAINT job_limit_once CHECK (id = 1),
    CONSTRAINT job_limit_range CHECK (max_running BETWEEN 0 AND 1000000)
) STRICT;

INSERT INTO job_limit (max_running) VALUES (NULL);

-- The last job id and the last fencing token ever assigned, also to deleted jobs: neither is reused.
CREATE TABLE job_number (
    id INTEGER NOT NULL DEFAULT 1,
    last_job INTEGER NOT NULL DEFAULT 0,
    last_token INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT job_number_pkey PRIMARY KEY (id),
    CONSTRAINT job_number_once CHECK (id = 1)
) STRICT;

INSERT INTO job_number DEFAULT VALUES;

-- Jobs as enqueued; a row is written once. Exactly one other record says where the job is: a run of its line, a waiting row, an
-- entry in a page of leases, or an end. No foreign keys: SQLite would look each up for every job.
-- max_attempts to timeout_us: NULL means that the queue's setting applies.
-- execution_id, node: set if the job runs a node of a graph; the index of the node in the graph.
CREATE TABLE job (
    id INTEGER NOT NULL,
    queue_id INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL,
    max_attempts INTEGER,
    backoff_base_us INTEGER,
    backoff_factor REAL,
    backoff_max_us INTEGER,
    backoff_jitter REAL,
    timeout_us INTEGER,
    trace_context TEXT,
    execution_id BLOB,
    node INTEGER,
    CONSTRAINT job_pkey PRIMARY KEY (id),
    CONSTRAINT job_node CHECK ((execution_id IS NULL) = (node IS NULL))
) STRICT;

CREATE INDEX job_of_queue ON job (queue_id);

-- Fresh jobs (never claimed, due at once), as runs of consecutive ids of one queue and priority. New jobs extend the last
-- run of their line if they can; claims take jobs from the first run.
CREATE TABLE job_line (
    queue_id INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    first_job INTEGER NOT NULL,
    last_job INTEGER NOT NULL,
    CONSTRAINT job_line_pkey PRIMARY KEY (queue_id, priority DESC, first_job),
    CONSTRAINT job_line_run CHECK (first_job <= last_job)
) STRICT, WITHOUT ROWID;

-- Waiting jobs: scheduled, or claimed before and then retried, snoozed, returned or expired.
-- ready: 1 if the job is due; claims set it.
CREATE TABLE job_waiting (
    job_id INTEGER NOT NULL,
    queue_id INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    ready INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    token INTEGER NOT NULL,
    CONSTRAINT job_waiting_pkey PRIMARY KEY (job_id),
    CONSTRAINT job_waiting_ready CHECK (ready IN (0, 1)),
    CONSTRAINT job_waiting_attempts CHECK (attempts >= 0)
) STRICT;

CREATE INDEX job_waiting_line ON job_waiting (queue_id, priority DESC, created_at, job_id) WHERE ready = 1;
CREATE INDEX job_waiting_due ON job_waiting (queue_id, run_at) WHERE ready = 0;

-- Running jobs: pages of up to 64 leases of one claim.
-- jobs: an array of [job, attempt, end of its lease minus expires_at, run_at unless equal to created_at].
-- expires_at: when the first lease of the page ends.
-- nodes: 1 if some of the jobs may run graph nodes, 0 if none does.
CREATE TABLE job_lease (
    token INTEGER NOT NULL,
    queue_id INTEGER NOT NULL,
    worker TEXT NOT NULL,
    claimed_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    size INTEGER NOT NULL,
    jobs TEXT NOT NULL,
    nodes INTEGER NOT NULL,
    CONSTRAINT job_lease_pkey PRIMARY KEY (token),
    CONSTRAINT job_lease_nodes CHECK (nodes IN (0, 1)),
    CONSTRAINT job_lease_size CHECK (size BETWEEN 1 AND 64 AND json_array_length(jobs) = size)
) STRICT;

CREATE INDEX job_lease_of_queue ON job_lease (queue_id, expires_at, size);
CREATE INDEX job_lease_expiry ON job_lease (expires_at, size);
CREATE INDEX job_lease_of_nodes ON job_lease (queue_id) WHERE nodes = 1;

-- Ended jobs. run_at is NULL if it equals created_at; started_at and worker are those of the last claim.
CREATE TABLE job_end (
    job_id INTEGER NOT NULL,
    queue_id INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    token INTEGER NOT NULL,
    run_at INTEGER,
    started_at INTEGER,
    finished_at INTEGER NOT NULL,
    worker TEXT,
    result TEXT,
    last_error TEXT,
    CONSTRAINT job_end_pkey PRIMARY KEY (job_id),
    CONSTRAINT job_end_failed CHECK (failed IN (0, 1)),
    CONSTRAINT job_end_result CHECK (result IS NULL OR failed = 0)
) STRICT;

CREATE INDEX job_end_age ON job_end (failed, finished_at);
CREATE INDEX job_end_of_failed ON job_end (queue_id, job_id) WHERE failed = 1;

-- Progress and last error of jobs that have not ended.
CREATE TABLE job_note (
    job_id INTEGER NOT NULL,
    progress TEXT,
    last_error TEXT,
    CONSTRAINT job_note_pkey PRIMARY KEY (job_id)
) STRICT;

-- Deduplication keys and the jobs that hold them: until holds_until, or until the job ends if that is NULL.
CREATE TABLE job_key (
    job_id INTEGER NOT NULL,
    queue_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    holds_until INTEGER,
    CONSTRAINT job_key_pkey PRIMARY KEY (job_id),
    CONSTRAINT job_key_once UNIQUE (queue_id, key),
    CONSTRAINT job_key_length CHECK (length(key) BETWEEN 1 AND 255)
) STRICT;

CREATE INDEX job_key_passing ON job_key (holds_until) WHERE holds_until IS NOT NULL;

-- Every job with its status, for ad hoc queries.
CREATE VIEW work_queue AS
WITH lease AS MATERIALIZED (
    SELECT entry.value ->> 0 AS job_id, entry.value ->> 1 AS attempt, page.worker, page.claimed_at,
        page.expires_at + (entry.value ->> 2) AS expires_at, entry.value ->> 3 AS run_at
    FROM job_lease page, json_each(page.jobs) entry
)
SELECT job.id, queue.name AS queue, job.kind,
    CASE WHEN job_end.failed THEN 'failed' WHEN NOT job_end.failed THEN 'completed'
        WHEN lease.job_id IS NOT NULL THEN 'running' ELSE 'queued' END AS status,
    job.priority, job.payload,
    coalesce(job_waiting.run_at, lease.run_at, job_end.run_at, job.created_at) AS run_at,
    coalesce(job_waiting.attempts, lease.attempt, job_end.attempts, 0) AS attempts,
    lease.worker AS claimed_by, lease.expires_at AS lease_expires_at, job.created_at,
    coalesce(lease.claimed_at, job_end.started_at) AS started_at, job_end.finished_at,
    coalesce(job_end.last_error, job_note.last_error) AS last_error, job_end.result
FROM job
JOIN queue ON queue.id = job.queue_id
LEFT JOIN job_waiting ON job_waiting.job_id = job.id
LEFT JOIN lease ON lease.job_id = job.id
LEFT JOIN job_end ON job_end.job_id = job.id
LEFT JOIN job_note ON job_note.job_id = job.id;
