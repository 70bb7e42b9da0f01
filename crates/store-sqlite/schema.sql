-- The schema that the migrations make. Written by tests/schema.rs; LEASEHOLD_BLESS=1 rewrites it.

CREATE TABLE admission_number (
    id INTEGER NOT NULL PRIMARY KEY DEFAULT 1,
    last INTEGER NOT NULL,
    CONSTRAINT admission_number_once CHECK (id = 1)
) STRICT;

CREATE TABLE api_key (
    id BLOB NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    workspace_id BLOB,
    queues TEXT,
    hash BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER,
    CONSTRAINT api_key_pkey PRIMARY KEY (id),
    CONSTRAINT api_key_hash_once UNIQUE (hash),
    CONSTRAINT api_key_of_workspace FOREIGN KEY (workspace_id) REFERENCES workspace (id),
    CONSTRAINT api_key_id_length CHECK (length(id) = 16),
    CONSTRAINT api_key_name_length CHECK (length(name) BETWEEN 1 AND 200),
    CONSTRAINT api_key_kind CHECK (kind IN ('admin', 'workspace', 'worker')),
    CONSTRAINT api_key_workspace CHECK ((kind = 'workspace') = (workspace_id IS NOT NULL)),
    CONSTRAINT api_key_queues CHECK (
        CASE WHEN kind = 'worker'
            THEN queues IS NOT NULL AND json_valid(queues) AND json_type(queues) = 'array' AND json_array_length(queues) > 0
            ELSE queues IS NULL END
    ),
    CONSTRAINT api_key_hash_length CHECK (length(hash) = 32)
) STRICT;

CREATE INDEX api_key_admin ON api_key (kind) WHERE kind = 'admin' AND revoked_at IS NULL;

CREATE INDEX api_key_list ON api_key (workspace_id, id) WHERE workspace_id IS NOT NULL;

CREATE TABLE execution_graph (
    execution_id BLOB NOT NULL,
    state TEXT NOT NULL,
    ended TEXT,
    error TEXT,
    deadline INTEGER,
    started_at INTEGER NOT NULL,
    finished_at INTEGER,
    CONSTRAINT execution_graph_pkey PRIMARY KEY (execution_id),
    CONSTRAINT execution_graph_execution FOREIGN KEY (execution_id) REFERENCES workflow_execution (id) ON DELETE CASCADE,
    CONSTRAINT execution_graph_state CHECK (length(state) > 0 AND state NOT GLOB '*[^wrcfx]*'),
    CONSTRAINT execution_graph_ended CHECK (ended IN ('completed', 'failed', 'timed_out', 'cancelled', 'terminated', 'lost')),
    CONSTRAINT execution_graph_finished CHECK ((ended IS NULL) = (finished_at IS NULL)),
    CONSTRAINT execution_graph_quiet CHECK (ended IS NULL OR state NOT GLOB '*[wr]*')
) STRICT;

CREATE INDEX execution_graph_deadline ON execution_graph (deadline) WHERE finished_at IS NULL AND deadline IS NOT NULL;

CREATE TABLE execution_node (
    execution_id BLOB NOT NULL,
    node INTEGER NOT NULL,
    job_id INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    output TEXT,
    error TEXT,
    started_at INTEGER NOT NULL,
    finished_at INTEGER,
    CONSTRAINT execution_node_pkey PRIMARY KEY (execution_id, node),
    CONSTRAINT execution_node_graph FOREIGN KEY (execution_id) REFERENCES execution_graph (execution_id) ON DELETE CASCADE,
    CONSTRAINT execution_node_place CHECK (node >= 0),
    CONSTRAINT execution_node_attempts CHECK (attempts >= 0),
    CONSTRAINT execution_node_output CHECK (output IS NULL OR (finished_at IS NOT NULL AND error IS NULL))
) STRICT;

CREATE TABLE instance (
    id TEXT NOT NULL,
    version TEXT NOT NULL,
    dispatches INTEGER NOT NULL,
    listens TEXT,
    started_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    CONSTRAINT instance_pkey PRIMARY KEY (id),
    CONSTRAINT instance_id_length CHECK (length(id) BETWEEN 1 AND 200),
    CONSTRAINT instance_dispatches CHECK (dispatches IN (0, 1))
) STRICT;

CREATE INDEX instance_seen ON instance (seen_at);

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

CREATE INDEX job_end_of_failed ON job_end (job_id) WHERE failed = 1;

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

CREATE INDEX job_lease_expiry ON job_lease (expires_at, size);

CREATE INDEX job_lease_of_nodes ON job_lease (queue_id) WHERE nodes = 1;

CREATE INDEX job_lease_of_queue ON job_lease (queue_id, expires_at, size);

CREATE TABLE job_limit (
    id INTEGER NOT NULL DEFAULT 1,
    max_running INTEGER,
    CONSTRAINT job_limit_pkey PRIMARY KEY (id),
    CONSTRAINT job_limit_once CHECK (id = 1),
    CONSTRAINT job_limit_range CHECK (max_running BETWEEN 0 AND 1000000)
) STRICT;

CREATE TABLE job_line (
    queue_id INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    first_job INTEGER NOT NULL,
    last_job INTEGER NOT NULL,
    CONSTRAINT job_line_pkey PRIMARY KEY (queue_id, priority DESC, first_job),
    CONSTRAINT job_line_run CHECK (first_job <= last_job)
) STRICT, WITHOUT ROWID;

CREATE TABLE job_note (
    job_id INTEGER NOT NULL,
    progress TEXT,
    last_error TEXT,
    CONSTRAINT job_note_pkey PRIMARY KEY (job_id)
) STRICT;

CREATE TABLE job_number (
    id INTEGER NOT NULL DEFAULT 1,
    last_job INTEGER NOT NULL DEFAULT 0,
    last_token INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT job_number_pkey PRIMARY KEY (id),
    CONSTRAINT job_number_once CHECK (id = 1)
) STRICT;

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

CREATE INDEX job_waiting_due ON job_waiting (queue_id, run_at) WHERE ready = 0;

CREATE INDEX job_waiting_line ON job_waiting (queue_id, priority DESC, created_at, job_id) WHERE ready = 1;

CREATE TABLE leasehold_migration (
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    checksum INTEGER NOT NULL,
    applied_at INTEGER NOT NULL,
    CONSTRAINT leasehold_migration_pkey PRIMARY KEY (number)
) STRICT;

CREATE TABLE node_spent (
    execution_id BLOB NOT NULL,
    node INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    error TEXT NOT NULL,
    CONSTRAINT node_spent_pkey PRIMARY KEY (execution_id, node),
    CONSTRAINT node_spent_graph FOREIGN KEY (execution_id) REFERENCES execution_graph (execution_id) ON DELETE CASCADE
) STRICT;

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
    CONSTRAINT queue_timeout CHECK (timeout_us > 0)
) STRICT;

CREATE TABLE request_event (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    request_id BLOB NOT NULL,
    workspace_id BLOB NOT NULL,
    from_status TEXT,
    to_status TEXT NOT NULL,
    at INTEGER NOT NULL,
    by_whom TEXT NOT NULL,
    reason TEXT
) STRICT;

CREATE INDEX request_event_request ON request_event (request_id, id);

CREATE TABLE shedlock (
    name TEXT NOT NULL,
    lock_until INTEGER NOT NULL,
    locked_at INTEGER NOT NULL,
    locked_by TEXT NOT NULL,
    fencing_token INTEGER NOT NULL DEFAULT 1,
    CONSTRAINT shedlock_pkey PRIMARY KEY (name),
    CONSTRAINT shedlock_name_length CHECK (length(name) BETWEEN 1 AND 64)
) STRICT;

CREATE TRIGGER shedlock_token AFTER UPDATE OF locked_at, locked_by ON shedlock
WHEN NEW.fencing_token = OLD.fencing_token AND (NEW.locked_at <> OLD.locked_at OR NEW.locked_by <> OLD.locked_by)
BEGIN
    UPDATE shedlock SET fencing_token = OLD.fencing_token + 1 WHERE name = NEW.name;
END;

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

CREATE TABLE workflow_definition (
    id BLOB NOT NULL,
    workspace_id BLOB NOT NULL,
    name TEXT NOT NULL,
    current_version_id BLOB,
    versions INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    deleted_at INTEGER,
    CONSTRAINT workflow_definition_pkey PRIMARY KEY (id),
    CONSTRAINT workflow_definition_workspace FOREIGN KEY (workspace_id) REFERENCES workspace (id),
    CONSTRAINT workflow_definition_id_length CHECK (length(id) = 16),
    CONSTRAINT workflow_definition_name_length CHECK (length(name) BETWEEN 1 AND 200),
    CONSTRAINT workflow_definition_published CHECK ((current_version_id IS NULL) = (versions = 0))
) STRICT;

CREATE INDEX workflow_definition_list ON workflow_definition (workspace_id, id);

CREATE UNIQUE INDEX workflow_definition_name ON workflow_definition (workspace_id, name) WHERE deleted_at IS NULL;

CREATE TABLE workflow_definition_version (
    id BLOB NOT NULL,
    workspace_id BLOB NOT NULL,
    definition_id BLOB NOT NULL,
    number INTEGER NOT NULL,
    body TEXT NOT NULL,
    params_schema TEXT,
    execution_timeout_ms INTEGER,
    created_at INTEGER NOT NULL,
    CONSTRAINT workflow_definition_version_pkey PRIMARY KEY (id),
    CONSTRAINT workflow_definition_version_number UNIQUE (definition_id, number),
    CONSTRAINT workflow_definition_version_definition FOREIGN KEY (definition_id) REFERENCES workflow_definition (id),
    CONSTRAINT workflow_definition_version_id_length CHECK (length(id) = 16),
    CONSTRAINT workflow_definition_version_body CHECK (json_valid(body)),
    CONSTRAINT workflow_definition_version_schema CHECK (json_valid(params_schema)),
    CONSTRAINT workflow_definition_version_timeout CHECK (execution_timeout_ms > 0)
) STRICT;

CREATE TRIGGER workflow_definition_version_is_immutable BEFORE UPDATE ON workflow_definition_version
BEGIN
    SELECT RAISE(ABORT, 'workflow_definition_version_is_immutable');
END;

CREATE TABLE workflow_execution (
    id BLOB NOT NULL,
    workspace_id BLOB NOT NULL,
    request_id BLOB NOT NULL,
    definition_id BLOB NOT NULL,
    version_id BLOB NOT NULL,
    status TEXT NOT NULL,
    admission INTEGER NOT NULL,
    slot INTEGER,
    started_at INTEGER NOT NULL,
    finished_at INTEGER,
    error TEXT,
    CONSTRAINT workflow_execution_pkey PRIMARY KEY (id),
    CONSTRAINT execution_request_once UNIQUE (request_id),
    CONSTRAINT execution_request FOREIGN KEY (request_id) REFERENCES workflow_execution_queue (id) ON DELETE CASCADE,
    CONSTRAINT execution_id_length CHECK (length(id) = 16),
    CONSTRAINT execution_status CHECK (status IN ('RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED')),
    CONSTRAINT execution_finished CHECK ((status = 'RUNNING') = (finished_at IS NULL)),
    CONSTRAINT execution_slot CHECK (slot >= 0)
) STRICT;

CREATE INDEX execution_list ON workflow_execution (workspace_id, admission);

CREATE INDEX execution_running ON workflow_execution (workspace_id, admission) WHERE status = 'RUNNING';

CREATE UNIQUE INDEX execution_slot_once ON workflow_execution (workspace_id, slot) WHERE status = 'RUNNING';

CREATE TRIGGER execution_frees_slot AFTER UPDATE OF status ON workflow_execution
WHEN NEW.status <> 'RUNNING' AND OLD.status = 'RUNNING'
BEGIN
    UPDATE workflow_execution SET slot = NULL WHERE id = NEW.id;
    UPDATE workflow_execution SET slot = OLD.slot
    WHERE id = (
        SELECT id FROM workflow_execution INDEXED BY execution_slot_once
        WHERE workspace_id = OLD.workspace_id AND status = 'RUNNING' AND slot > OLD.slot ORDER BY slot DESC LIMIT 1);
    UPDATE workspace_turn SET has_room = 1
    WHERE workspace_id = OLD.workspace_id AND has_room = 0 AND concurrency_limit > 1 + coalesce((
        SELECT slot FROM workflow_execution INDEXED BY execution_slot_once
        WHERE workspace_id = OLD.workspace_id AND status = 'RUNNING' ORDER BY slot DESC LIMIT 1), -1);
END;

CREATE TRIGGER execution_identity BEFORE UPDATE OF id, workspace_id, request_id ON workflow_execution
WHEN NEW.id <> OLD.id OR NEW.workspace_id <> OLD.workspace_id OR NEW.request_id <> OLD.request_id
BEGIN
    SELECT RAISE(ABORT, 'execution_identity');
END;

CREATE TRIGGER execution_insert_slot BEFORE INSERT ON workflow_execution
WHEN NEW.slot IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'execution_slot');
END;

CREATE TRIGGER execution_of_workspace BEFORE INSERT ON workflow_execution
WHEN NOT EXISTS (
    SELECT 1 FROM workflow_execution_queue WHERE id = NEW.request_id AND workspace_id = NEW.workspace_id)
BEGIN
    SELECT RAISE(ABORT, 'execution_request');
END;

CREATE TRIGGER execution_takes_slot AFTER INSERT ON workflow_execution
WHEN NEW.status = 'RUNNING'
BEGIN
    UPDATE workflow_execution
    SET slot = 1 + coalesce((
        SELECT slot FROM workflow_execution INDEXED BY execution_slot_once
        WHERE workspace_id = NEW.workspace_id AND status = 'RUNNING' ORDER BY slot DESC LIMIT 1), -1)
    WHERE id = NEW.id;
    SELECT RAISE(ABORT, 'workspace_limit')
    FROM workspace_turn t, workflow_execution e
    WHERE t.workspace_id = NEW.workspace_id AND e.id = NEW.id AND e.slot >= t.concurrency_limit;
    UPDATE workspace_turn
    SET turn = NEW.admission,
        has_room = 1 + (SELECT slot FROM workflow_execution WHERE id = NEW.id) < concurrency_limit
    WHERE workspace_id = NEW.workspace_id;
END;

CREATE TRIGGER execution_takes_slot_again AFTER UPDATE OF status ON workflow_execution
WHEN NEW.status = 'RUNNING' AND OLD.status <> 'RUNNING'
BEGIN
    UPDATE workflow_execution
    SET slot = 1 + coalesce((
        SELECT slot FROM workflow_execution INDEXED BY execution_slot_once
        WHERE workspace_id = NEW.workspace_id AND status = 'RUNNING' ORDER BY slot DESC LIMIT 1), -1)
    WHERE id = NEW.id;
    SELECT RAISE(ABORT, 'workspace_limit')
    FROM workspace_turn t, workflow_execution e
    WHERE t.workspace_id = NEW.workspace_id AND e.id = NEW.id AND e.slot >= t.concurrency_limit;
    UPDATE workspace_turn
    SET has_room = 1 + (SELECT slot FROM workflow_execution WHERE id = NEW.id) < concurrency_limit
    WHERE workspace_id = NEW.workspace_id;
END;

CREATE TRIGGER execution_update_slot BEFORE UPDATE OF slot ON workflow_execution
WHEN NEW.status = 'RUNNING' AND OLD.status = 'RUNNING' AND NEW.slot IS NULL
BEGIN
    SELECT RAISE(ABORT, 'execution_slot');
END;

CREATE TRIGGER execution_vanishes AFTER DELETE ON workflow_execution
WHEN OLD.status = 'RUNNING'
BEGIN
    UPDATE workflow_execution SET slot = OLD.slot
    WHERE id = (
        SELECT id FROM workflow_execution INDEXED BY execution_slot_once
        WHERE workspace_id = OLD.workspace_id AND status = 'RUNNING' AND slot > OLD.slot ORDER BY slot DESC LIMIT 1);
    UPDATE workspace_turn SET has_room = 1
    WHERE workspace_id = OLD.workspace_id AND has_room = 0 AND concurrency_limit > 1 + coalesce((
        SELECT slot FROM workflow_execution INDEXED BY execution_slot_once
        WHERE workspace_id = OLD.workspace_id AND status = 'RUNNING' ORDER BY slot DESC LIMIT 1), -1);
END;

CREATE TABLE workflow_execution_queue (
    id BLOB NOT NULL,
    workspace_id BLOB NOT NULL,
    definition_id BLOB NOT NULL,
    version_id BLOB NOT NULL,
    status TEXT NOT NULL DEFAULT 'PENDING',
    priority INTEGER NOT NULL DEFAULT 0,
    due INTEGER,
    attempt_count INTEGER NOT NULL DEFAULT 0,
    dispatch_failures INTEGER NOT NULL DEFAULT 0,
    run_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    claimed_at INTEGER,
    dispatched_at INTEGER,
    finished_at INTEGER,
    cancel_requested_at INTEGER,
    lease_expires_at INTEGER,
    dedupe_until INTEGER,
    claim_token INTEGER NOT NULL DEFAULT 0,
    execution_id BLOB,
    execution_lost INTEGER NOT NULL DEFAULT 0,
    redrive_of BLOB,
    live_redrive_of BLOB,
    redriven INTEGER NOT NULL DEFAULT 0,
    claimed_by TEXT,
    failure_reason TEXT,
    idempotency_key TEXT,
    trace_context TEXT,
    last_error TEXT,
    params TEXT NOT NULL DEFAULT 'null', cancel_force INTEGER NOT NULL DEFAULT 0
    CONSTRAINT request_cancel_force CHECK (cancel_force IN (0, 1)), cancel_told_at INTEGER
    CONSTRAINT request_cancel CHECK (
        cancel_requested_at IS NOT NULL OR (cancel_force = 0 AND cancel_told_at IS NULL)
    ),
    CONSTRAINT workflow_execution_queue_pkey PRIMARY KEY (id),
    CONSTRAINT request_workspace FOREIGN KEY (workspace_id) REFERENCES workspace (id),
    CONSTRAINT request_id_length CHECK (length(id) = 16),
    CONSTRAINT request_status CHECK (status IN ('PENDING', 'CLAIMED', 'DISPATCHED', 'COMPLETED', 'FAILED')),
    CONSTRAINT request_priority CHECK (priority BETWEEN -1000 AND 1000),
    CONSTRAINT request_due CHECK ((status = 'PENDING') = (due IS NOT NULL) AND (due IS NULL OR due IN (0, 1))),
    CONSTRAINT request_claim_fields CHECK (
        (status = 'CLAIMED') = (claimed_by IS NOT NULL) AND (status = 'CLAIMED') = (lease_expires_at IS NOT NULL)
    ),
    CONSTRAINT request_claimed_at CHECK (
        CASE status WHEN 'PENDING' THEN claimed_at IS NULL WHEN 'FAILED' THEN 1 ELSE claimed_at IS NOT NULL END
    ),
    CONSTRAINT request_dispatched_at CHECK (
        CASE WHEN status IN ('DISPATCHED', 'COMPLETED') THEN dispatched_at IS NOT NULL
            WHEN status = 'FAILED' THEN 1 ELSE dispatched_at IS NULL END
    ),
    CONSTRAINT request_execution CHECK (execution_id IS NOT NULL OR status IN ('PENDING', 'FAILED')),
    CONSTRAINT request_execution_lost CHECK (
        execution_lost = 0 OR (execution_lost = 1 AND execution_id IS NULL)
    ),
    CONSTRAINT request_finished CHECK ((status IN ('COMPLETED', 'FAILED')) = (finished_at IS NOT NULL)),
    CONSTRAINT request_failure_reason CHECK (
        (status = 'FAILED') = (failure_reason IS NOT NULL)
        AND (failure_reason IS NULL OR (length(failure_reason) BETWEEN 1 AND 64 AND failure_reason NOT GLOB '*[^a-z_]*'))
    ),
    CONSTRAINT request_attempts CHECK (dispatch_failures >= 0 AND attempt_count >= dispatch_failures),
    CONSTRAINT request_redrive CHECK (live_redrive_of IS NULL OR (redrive_of IS NOT NULL AND live_redrive_of = redrive_of)),
    CONSTRAINT request_live_redrive CHECK (
        redrive_of IS NULL OR (live_redrive_of IS NULL) = (status IN ('COMPLETED', 'FAILED'))
    ),
    CONSTRAINT request_key_length CHECK (length(idempotency_key) BETWEEN 1 AND 255),
    CONSTRAINT request_params CHECK (json_valid(params))
) STRICT;

CREATE INDEX request_cancel_untold ON workflow_execution_queue (status, cancel_requested_at, id)
    WHERE status = 'DISPATCHED' AND cancel_requested_at IS NOT NULL AND cancel_told_at IS NULL;

CREATE INDEX request_dedupe_until ON workflow_execution_queue (dedupe_until)
    WHERE idempotency_key IS NOT NULL AND dedupe_until IS NOT NULL;

CREATE UNIQUE INDEX request_idempotency_key ON workflow_execution_queue (workspace_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;

CREATE INDEX request_kept ON workflow_execution_queue (due, created_at, id)
    WHERE due = 1 AND execution_id IS NOT NULL;

CREATE INDEX request_lease ON workflow_execution_queue (lease_expires_at) WHERE lease_expires_at IS NOT NULL;

CREATE INDEX request_line ON workflow_execution_queue (workspace_id, priority DESC, created_at, id)
    WHERE due = 1 AND execution_id IS NULL;

CREATE INDEX request_list ON workflow_execution_queue (workspace_id, id);

CREATE INDEX request_list_of_definition ON workflow_execution_queue (definition_id, id);

CREATE INDEX request_list_of_status ON workflow_execution_queue (status, id);

CREATE INDEX request_list_of_workspace_status ON workflow_execution_queue (workspace_id, status, id);

CREATE INDEX request_not_due ON workflow_execution_queue (due, run_at) WHERE due = 0;

CREATE UNIQUE INDEX request_one_live_redrive ON workflow_execution_queue (live_redrive_of)
    WHERE live_redrive_of IS NOT NULL;

CREATE INDEX request_to_prune ON workflow_execution_queue (status, finished_at) WHERE finished_at IS NOT NULL;

CREATE INDEX request_to_redrive ON workflow_execution_queue (workspace_id, id)
    WHERE status = 'FAILED' AND redriven = 0;

CREATE TRIGGER request_begins_pending BEFORE INSERT ON workflow_execution_queue
WHEN NEW.status <> 'PENDING'
BEGIN
    SELECT RAISE(ABORT, 'request_transition');
END;

CREATE TRIGGER request_delete_turn AFTER DELETE ON workflow_execution_queue
BEGIN
    UPDATE workspace_turn
    SET pending = pending - (OLD.status = 'PENDING'),
        claimed = claimed - (OLD.status = 'CLAIMED'),
        dispatched = dispatched - (OLD.status = 'DISPATCHED'),
        completed = completed - (OLD.status = 'COMPLETED'),
        failed = failed - (OLD.status = 'FAILED'),
        waiting = waiting - (OLD.due IS 1 AND OLD.execution_id IS NULL)
    WHERE workspace_id = OLD.workspace_id;
END;

CREATE TRIGGER request_identity BEFORE UPDATE OF id, workspace_id ON workflow_execution_queue
WHEN NEW.id <> OLD.id OR NEW.workspace_id <> OLD.workspace_id
BEGIN
    SELECT RAISE(ABORT, 'request_identity');
END;

CREATE TRIGGER request_insert_redrive AFTER INSERT ON workflow_execution_queue
WHEN NEW.redrive_of IS NOT NULL
BEGIN
    UPDATE workflow_execution_queue SET redriven = 1 WHERE id = NEW.redrive_of;
END;

CREATE TRIGGER request_insert_turn AFTER INSERT ON workflow_execution_queue
BEGIN
    UPDATE workspace_turn
    SET pending = pending + 1, waiting = waiting + (NEW.due = 1 AND NEW.execution_id IS NULL)
    WHERE workspace_id = NEW.workspace_id;
END;

CREATE TRIGGER request_transition BEFORE UPDATE OF status ON workflow_execution_queue
WHEN OLD.status <> NEW.status AND NOT coalesce(CASE OLD.status
    WHEN 'PENDING' THEN NEW.status = 'CLAIMED' OR (NEW.status = 'FAILED' AND NEW.failure_reason IN (
        'cancelled', 'workspace_not_found', 'definition_not_found', 'version_not_found'))
    WHEN 'CLAIMED' THEN NEW.status IN ('DISPATCHED', 'PENDING', 'FAILED')
    WHEN 'DISPATCHED' THEN NEW.status IN ('COMPLETED', 'FAILED')
    ELSE 0 END, 0)
BEGIN
    SELECT RAISE(ABORT, 'request_transition');
END;

CREATE TRIGGER request_update_turn AFTER UPDATE OF status, due, execution_id ON workflow_execution_queue
WHEN OLD.status <> NEW.status OR OLD.due IS NOT NEW.due OR (OLD.execution_id IS NULL) <> (NEW.execution_id IS NULL)
BEGIN
    UPDATE workspace_turn
    SET pending = pending + (NEW.status = 'PENDING') - (OLD.status = 'PENDING'),
        claimed = claimed + (NEW.status = 'CLAIMED') - (OLD.status = 'CLAIMED'),
        dispatched = dispatched + (NEW.status = 'DISPATCHED') - (OLD.status = 'DISPATCHED'),
        completed = completed + (NEW.status = 'COMPLETED') - (OLD.status = 'COMPLETED'),
        failed = failed + (NEW.status = 'FAILED') - (OLD.status = 'FAILED'),
        waiting = waiting + (NEW.due IS 1 AND NEW.execution_id IS NULL) - (OLD.due IS 1 AND OLD.execution_id IS NULL)
    WHERE workspace_id = NEW.workspace_id;
END;

CREATE TABLE workspace (
    id BLOB NOT NULL,
    name TEXT NOT NULL,
    plan TEXT NOT NULL,
    limit_override INTEGER,
    concurrency_limit INTEGER NOT NULL GENERATED ALWAYS AS (
        coalesce(limit_override, CASE plan WHEN 'FREE' THEN 1 WHEN 'PRO' THEN 5 ELSE 20 END)
    ) VIRTUAL,
    paused INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER,
    CONSTRAINT workspace_pkey PRIMARY KEY (id),
    CONSTRAINT workspace_id_length CHECK (length(id) = 16),
    CONSTRAINT workspace_name_length CHECK (length(name) BETWEEN 1 AND 200),
    CONSTRAINT workspace_plan CHECK (plan IN ('FREE', 'PRO', 'ENTERPRISE')),
    CONSTRAINT workspace_limit_range CHECK (limit_override BETWEEN 0 AND 100000),
    CONSTRAINT workspace_paused CHECK (paused IN (0, 1))
) STRICT;

CREATE UNIQUE INDEX workspace_name ON workspace (name) WHERE deleted_at IS NULL;

CREATE TRIGGER workspace_insert_turn AFTER INSERT ON workspace
BEGIN
    INSERT INTO workspace_turn (workspace_id, concurrency_limit, paused, deleted, has_room)
    VALUES (NEW.id, NEW.concurrency_limit, NEW.paused, NEW.deleted_at IS NOT NULL, NEW.concurrency_limit > 0);
END;

CREATE TRIGGER workspace_is_kept BEFORE DELETE ON workspace
BEGIN
    SELECT RAISE(ABORT, 'workspace_is_kept');
END;

CREATE TRIGGER workspace_update_turn AFTER UPDATE OF plan, limit_override, paused, deleted_at ON workspace
BEGIN
    UPDATE workspace_turn
    SET concurrency_limit = NEW.concurrency_limit, paused = NEW.paused, deleted = NEW.deleted_at IS NOT NULL
    WHERE workspace_id = NEW.id;
END;

CREATE TABLE workspace_turn (
    workspace_id BLOB NOT NULL,
    concurrency_limit INTEGER NOT NULL,
    paused INTEGER NOT NULL,
    deleted INTEGER NOT NULL DEFAULT 0,
    turn INTEGER NOT NULL DEFAULT 0,
    waiting INTEGER NOT NULL DEFAULT 0,
    has_room INTEGER NOT NULL,
    ready INTEGER NOT NULL GENERATED ALWAYS AS (
        waiting > 0 AND (deleted = 1 OR (has_room = 1 AND paused = 0))
    ) VIRTUAL,
    pending INTEGER NOT NULL DEFAULT 0,
    claimed INTEGER NOT NULL DEFAULT 0,
    dispatched INTEGER NOT NULL DEFAULT 0,
    completed INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT workspace_turn_pkey PRIMARY KEY (workspace_id),
    CONSTRAINT workspace_turn_workspace FOREIGN KEY (workspace_id) REFERENCES workspace (id),
    CONSTRAINT workspace_turn_limit_range CHECK (concurrency_limit BETWEEN 0 AND 100000)
) STRICT;

CREATE INDEX workspace_turn_ready ON workspace_turn (ready, turn) WHERE ready = 1;

CREATE TRIGGER workspace_turn_limit AFTER UPDATE OF concurrency_limit ON workspace_turn
WHEN NEW.concurrency_limit <> OLD.concurrency_limit
BEGIN
    UPDATE workspace_turn
    SET has_room = concurrency_limit > 1 + coalesce((
        SELECT slot FROM workflow_execution INDEXED BY execution_slot_once
        WHERE workspace_id = NEW.workspace_id AND status = 'RUNNING' ORDER BY slot DESC LIMIT 1), -1)
    WHERE workspace_id = NEW.workspace_id;
END;
