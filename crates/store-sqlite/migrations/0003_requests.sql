-- The execution queue, the executions that hold slots, the event log of all transitions, and the triggers between them.
-- compatible_from: 3

-- due: 1 = in its workspace's line, 0 = scheduled for run_at, NULL = not PENDING.
-- cancel_told_at: when the engine acknowledged the cancel request. cancel_force: terminate instead of cancel.
-- bytes: what the request counts while it is open, from its enqueue on. execution_bytes: what its execution has added. The sum
-- of both over the open requests of a workspace is its open_bytes.
-- crashes: crashes of processes in a row while they computed the request's input, since the last computation that succeeded.
-- NULL: none. crashes_alone: the latest of them at which the process computed nothing else.
-- crashed_process: the process that crashed last. Its crash counts once, however often it is noted.
-- execution_lost: 1 if the execution that it kept is unexpectedly missing; it waits in the line like a request without one.
-- redriven: 1 if it was ever redriven, even if that redrive was pruned.
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
    cancel_told_at INTEGER,
    cancel_force INTEGER NOT NULL DEFAULT 0,
    lease_expires_at INTEGER,
    dedupe_until INTEGER,
    claim_token INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    execution_bytes INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER,
    crashes_alone INTEGER,
    crashed_process TEXT,
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
    params TEXT NOT NULL DEFAULT 'null',
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
    CONSTRAINT request_cancel_force CHECK (cancel_force IN (0, 1)),
    CONSTRAINT request_cancel CHECK (
        cancel_requested_at IS NOT NULL OR (cancel_force = 0 AND cancel_told_at IS NULL)
    ),
    CONSTRAINT request_bytes CHECK (bytes >= 0),
    CONSTRAINT request_execution_bytes CHECK (execution_bytes >= 0),
    CONSTRAINT request_crashes CHECK (
        (crashes IS NULL AND crashes_alone IS NULL AND crashed_process IS NULL)
        OR (crashes >= 1 AND crashes_alone BETWEEN 0 AND crashes AND crashed_process IS NOT NULL)
    ),
    CONSTRAINT request_params CHECK (json_valid(params))
) STRICT;

CREATE INDEX request_line ON workflow_execution_queue (workspace_id, priority DESC, created_at, id)
    WHERE due = 1 AND execution_id IS NULL;
CREATE INDEX request_kept ON workflow_execution_queue (due, created_at, id)
    WHERE due = 1 AND execution_id IS NOT NULL;
CREATE INDEX request_not_due ON workflow_execution_queue (due, run_at) WHERE due = 0;
CREATE INDEX request_lease ON workflow_execution_queue (lease_expires_at) WHERE lease_expires_at IS NOT NULL;
CREATE INDEX request_list ON workflow_execution_queue (workspace_id, id);
CREATE INDEX request_list_of_status ON workflow_execution_queue (status, id);
CREATE INDEX request_list_of_workspace_status ON workflow_execution_queue (workspace_id, status, id);
CREATE INDEX request_list_of_definition ON workflow_execution_queue (definition_id, id);
CREATE INDEX request_to_redrive ON workflow_execution_queue (workspace_id, id)
    WHERE status = 'FAILED' AND redriven = 0;
CREATE INDEX request_to_prune ON workflow_execution_queue (status, finished_at) WHERE finished_at IS NOT NULL;
CREATE UNIQUE INDEX request_idempotency_key ON workflow_execution_queue (workspace_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX request_dedupe_until ON workflow_execution_queue (dedupe_until)
    WHERE idempotency_key IS NOT NULL AND dedupe_until IS NOT NULL;
CREATE UNIQUE INDEX request_one_live_redrive ON workflow_execution_queue (live_redrive_of)
    WHERE live_redrive_of IS NOT NULL;
CREATE INDEX request_cancel_untold ON workflow_execution_queue (status, cancel_requested_at, id)
    WHERE status = 'DISPATCHED' AND cancel_requested_at IS NOT NULL AND cancel_told_at IS NULL;

CREATE TRIGGER request_begins_pending BEFORE INSERT ON workflow_execution_queue
WHEN NEW.status <> 'PENDING'
BEGIN
    SELECT RAISE(ABORT, 'request_transition');
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

-- Triggers update the counts and the line's length with every write. One thread writes, so this causes no contention.
CREATE TRIGGER request_insert_turn AFTER INSERT ON workflow_execution_queue
BEGIN
    UPDATE workspace_turn
    SET pending = pending + 1, waiting = waiting + (NEW.due = 1 AND NEW.execution_id IS NULL),
        open_bytes = open_bytes + NEW.bytes + NEW.execution_bytes
    WHERE workspace_id = NEW.workspace_id;
END;

-- An ended request has no bytes; finished_at tells.
CREATE TRIGGER request_update_turn AFTER UPDATE OF status, due, execution_id, bytes, execution_bytes ON workflow_execution_queue
WHEN OLD.status <> NEW.status OR OLD.due IS NOT NEW.due OR (OLD.execution_id IS NULL) <> (NEW.execution_id IS NULL)
    OR OLD.bytes <> NEW.bytes OR OLD.execution_bytes <> NEW.execution_bytes
BEGIN
    UPDATE workspace_turn
    SET pending = pending + (NEW.status = 'PENDING') - (OLD.status = 'PENDING'),
        claimed = claimed + (NEW.status = 'CLAIMED') - (OLD.status = 'CLAIMED'),
        dispatched = dispatched + (NEW.status = 'DISPATCHED') - (OLD.status = 'DISPATCHED'),
        completed = completed + (NEW.status = 'COMPLETED') - (OLD.status = 'COMPLETED'),
        failed = failed + (NEW.status = 'FAILED') - (OLD.status = 'FAILED'),
        waiting = waiting + (NEW.due IS 1 AND NEW.execution_id IS NULL) - (OLD.due IS 1 AND OLD.execution_id IS NULL),
        open_bytes = open_bytes + (NEW.finished_at IS NULL) * (NEW.bytes + NEW.execution_bytes)
            - (OLD.finished_at IS NULL) * (OLD.bytes + OLD.execution_bytes)
    WHERE workspace_id = NEW.workspace_id;
END;

CREATE TRIGGER request_delete_turn AFTER DELETE ON workflow_execution_queue
BEGIN
    UPDATE workspace_turn
    SET pending = pending - (OLD.status = 'PENDING'),
        claimed = claimed - (OLD.status = 'CLAIMED'),
        dispatched = dispatched - (OLD.status = 'DISPATCHED'),
        completed = completed - (OLD.status = 'COMPLETED'),
        failed = failed - (OLD.status = 'FAILED'),
        waiting = waiting - (OLD.due IS 1 AND OLD.execution_id IS NULL),
        open_bytes = open_bytes - (OLD.finished_at IS NULL) * (OLD.bytes + OLD.execution_bytes)
    WHERE workspace_id = OLD.workspace_id;
END;

-- A RUNNING execution uses one slot; nothing else records the use. `slot` is the slot's number: the RUNNING executions
-- of a workspace are numbered 0, 1, 2 … without a gap. Numbers are unique (execution_slot_once), so n executions have
-- a highest number of at least n - 1. A highest number below the limit therefore proves that at most `limit` run, and one
-- index lookup finds it. When an execution ends, the one with the highest number takes over its number.
-- Rejected: a bounded count for each admission (LIMIT 1 OFFSET limit), which reads every RUNNING row. Measured for one
-- admission with 1,000 and with 20,000 running under a limit of 100,000: 2,397 and 62,397 SQLite steps, 96 and 582
-- microseconds; the slot number takes 999 steps and about 90 microseconds in both cases.
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

CREATE INDEX execution_running ON workflow_execution (workspace_id, admission) WHERE status = 'RUNNING';
CREATE UNIQUE INDEX execution_slot_once ON workflow_execution (workspace_id, slot) WHERE status = 'RUNNING';
-- For lists, newest first.
CREATE INDEX execution_list ON workflow_execution (workspace_id, admission);

-- The database assigns the slot number; every RUNNING execution has one.
CREATE TRIGGER execution_insert_slot BEFORE INSERT ON workflow_execution
WHEN NEW.slot IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'execution_slot');
END;

CREATE TRIGGER execution_update_slot BEFORE UPDATE OF slot ON workflow_execution
WHEN NEW.status = 'RUNNING' AND OLD.status = 'RUNNING' AND NEW.slot IS NULL
BEGIN
    SELECT RAISE(ABORT, 'execution_slot');
END;

CREATE TRIGGER execution_identity BEFORE UPDATE OF id, workspace_id, request_id ON workflow_execution
WHEN NEW.id <> OLD.id OR NEW.workspace_id <> OLD.workspace_id OR NEW.request_id <> OLD.request_id
BEGIN
    SELECT RAISE(ABORT, 'execution_identity');
END;

CREATE TRIGGER execution_of_workspace BEFORE INSERT ON workflow_execution
WHEN NOT EXISTS (
    SELECT 1 FROM workflow_execution_queue WHERE id = NEW.request_id AND workspace_id = NEW.workspace_id)
BEGIN
    SELECT RAISE(ABORT, 'execution_request');
END;

-- The new row has no slot yet and sorts last, so the first row found is the highest of the others.
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

CREATE TRIGGER workspace_turn_limit AFTER UPDATE OF concurrency_limit ON workspace_turn
WHEN NEW.concurrency_limit <> OLD.concurrency_limit
BEGIN
    UPDATE workspace_turn
    SET has_room = concurrency_limit > 1 + coalesce((
        SELECT slot FROM workflow_execution INDEXED BY execution_slot_once
        WHERE workspace_id = NEW.workspace_id AND status = 'RUNNING' ORDER BY slot DESC LIMIT 1), -1)
    WHERE workspace_id = NEW.workspace_id;
END;

-- One thread writes, so ids follow the order of commits. AUTOINCREMENT never reuses an id, not even after the newest
-- events were pruned, so cursors stay valid.
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

-- Idempotency keys that outlive their request, until their window ends. docs/adr/0024-store-errors-and-kept-keys.md explains them.
-- params_hash: SHA-256 of the canonical text of the params, so that a key keeps no payload.
CREATE TABLE kept_key (
    workspace_id BLOB NOT NULL,
    request_id BLOB NOT NULL,
    definition_id BLOB NOT NULL,
    dedupe_until INTEGER NOT NULL,
    key TEXT NOT NULL,
    params_hash BLOB NOT NULL,
    CONSTRAINT kept_key_pkey PRIMARY KEY (workspace_id, key),
    CONSTRAINT kept_key_hash CHECK (length(params_hash) = 32)
) STRICT, WITHOUT ROWID;

CREATE INDEX kept_key_until ON kept_key (dedupe_until);

CREATE TRIGGER request_key_is_free BEFORE INSERT ON workflow_execution_queue
WHEN NEW.idempotency_key IS NOT NULL AND EXISTS (
    SELECT 1 FROM kept_key k
    WHERE k.workspace_id = NEW.workspace_id AND k.key = NEW.idempotency_key AND k.dedupe_until > NEW.created_at)
BEGIN
    SELECT RAISE(ABORT, 'request_idempotency_key');
END;
