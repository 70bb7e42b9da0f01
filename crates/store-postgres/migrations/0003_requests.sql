-- The execution queue, the executions that hold slots, the event log of all transitions, and the constraints between them.
-- compatible_from: 3

-- due: TRUE in its workspace's line, FALSE waiting for run_at, NULL not PENDING. No indexed column changes on the step to
-- COMPLETED, so that step writes no index entry (HOT update).
-- cancel_untold: the time of the cancel request while the execution is DISPATCHED and the engine has not acknowledged. NULL
-- otherwise, so that other updates write no index entry.
-- bytes: what the request counts while it is open, from its enqueue on. execution_bytes: what its execution has added; NULL is 0. The sum
-- of both over the open requests of a workspace is its open_bytes.
-- crashes: crashes of processes in a row while they computed the request's input, since the last computation that succeeded. NULL: none; almost
-- all rows, in which the columns take no space. crashes_alone: the latest of them at which the process computed nothing else.
-- crashed_process: the process that crashed last. Its crash counts once, however often it is noted.
CREATE TABLE {schema}.workflow_execution_queue (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    definition_id uuid NOT NULL,
    version_id uuid NOT NULL,
    status text NOT NULL DEFAULT 'PENDING',
    priority smallint NOT NULL DEFAULT 0,
    rank smallint NOT NULL GENERATED ALWAYS AS (-priority) STORED,
    due boolean,
    attempt_count integer NOT NULL DEFAULT 0,
    dispatch_failures integer NOT NULL DEFAULT 0,
    run_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    claimed_at timestamptz,
    dispatched_at timestamptz,
    finished_at timestamptz,
    failed_at timestamptz GENERATED ALWAYS AS (CASE WHEN status = 'FAILED' THEN finished_at END) STORED,
    cancel_requested_at timestamptz,
    cancel_told_at timestamptz,
    cancel_untold timestamptz GENERATED ALWAYS AS (
        CASE WHEN status = 'DISPATCHED' AND cancel_told_at IS NULL THEN cancel_requested_at END
    ) STORED,
    cancel_force boolean NOT NULL DEFAULT false,
    lease_expires_at timestamptz,
    dedupe_until timestamptz,
    claim_token bigint NOT NULL DEFAULT 0,
    bytes integer NOT NULL DEFAULT 0,
    execution_bytes bigint,
    crashes smallint,
    crashes_alone smallint,
    crashed_process text,
    execution_id uuid,
    redrive_of uuid,
    live_redrive_of uuid,
    redriven boolean NOT NULL DEFAULT false,
    claimed_by text,
    failure_reason text,
    idempotency_key text,
    trace_context text,
    last_error text,
    params jsonb NOT NULL DEFAULT 'null',
    CONSTRAINT workflow_execution_queue_pkey PRIMARY KEY (id)
) WITH (fillfactor = 80);

CREATE INDEX request_line ON {schema}.workflow_execution_queue (workspace_id, rank, created_at, id)
    WHERE due AND execution_id IS NULL;
CREATE INDEX request_kept ON {schema}.workflow_execution_queue (created_at, id) WHERE due AND execution_id IS NOT NULL;
CREATE INDEX request_not_due ON {schema}.workflow_execution_queue (run_at) WHERE NOT due;
CREATE INDEX request_lease ON {schema}.workflow_execution_queue (lease_expires_at) WHERE lease_expires_at IS NOT NULL;
CREATE UNIQUE INDEX request_list ON {schema}.workflow_execution_queue (workspace_id, id);
CREATE INDEX request_failed ON {schema}.workflow_execution_queue (workspace_id, id) WHERE failure_reason IS NOT NULL;
CREATE INDEX request_redrivable ON {schema}.workflow_execution_queue (workspace_id, id)
    WHERE failure_reason IS NOT NULL AND NOT redriven;
CREATE INDEX request_failed_at ON {schema}.workflow_execution_queue (failed_at) WHERE failed_at IS NOT NULL;
CREATE UNIQUE INDEX request_idempotency_key ON {schema}.workflow_execution_queue (workspace_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX request_dedupe_until ON {schema}.workflow_execution_queue (dedupe_until)
    WHERE idempotency_key IS NOT NULL AND dedupe_until IS NOT NULL;
CREATE INDEX request_cancel_untold ON {schema}.workflow_execution_queue (cancel_untold, id) WHERE cancel_untold IS NOT NULL;
CREATE UNIQUE INDEX request_one_live_redrive ON {schema}.workflow_execution_queue (live_redrive_of)
    WHERE live_redrive_of IS NOT NULL;

CREATE TRIGGER request_is_valid BEFORE INSERT OR UPDATE ON {schema}.workflow_execution_queue
    FOR EACH ROW EXECUTE FUNCTION {schema}.leasehold_check_request();

-- A RUNNING execution holds a slot; slots have no other record.
CREATE TABLE {schema}.workflow_execution (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    request_id uuid NOT NULL,
    definition_id uuid NOT NULL,
    version_id uuid NOT NULL,
    status text NOT NULL,
    admission bigint NOT NULL,
    started_at timestamptz NOT NULL,
    finished_at timestamptz,
    error text,
    CONSTRAINT workflow_execution_pkey PRIMARY KEY (id),
    CONSTRAINT execution_request_once UNIQUE (request_id),
    CONSTRAINT execution_request FOREIGN KEY (workspace_id, request_id)
        REFERENCES {schema}.workflow_execution_queue (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT execution_status CHECK (status IN ('RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED')),
    CONSTRAINT execution_finished CHECK ((status = 'RUNNING') = (finished_at IS NULL))
) WITH (fillfactor = 80);

CREATE INDEX execution_running ON {schema}.workflow_execution (workspace_id, admission) WHERE status = 'RUNNING';
-- For lists, newest first.
CREATE INDEX execution_list ON {schema}.workflow_execution (workspace_id, admission);
CREATE INDEX execution_completed ON {schema}.workflow_execution (finished_at) WHERE status = 'COMPLETED';

CREATE TRIGGER execution_takes_slot AFTER INSERT ON {schema}.workflow_execution
    REFERENCING NEW TABLE AS inserted
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.leasehold_execution_inserted();
CREATE TRIGGER execution_takes_slot_again AFTER UPDATE ON {schema}.workflow_execution
    FOR EACH ROW WHEN (NEW.status = 'RUNNING' AND (OLD.status <> 'RUNNING' OR NEW.admission <> OLD.admission))
    EXECUTE FUNCTION {schema}.leasehold_execution_updated();
CREATE TRIGGER execution_identity BEFORE UPDATE ON {schema}.workflow_execution
    FOR EACH ROW WHEN (OLD.id <> NEW.id OR OLD.workspace_id <> NEW.workspace_id OR OLD.request_id <> NEW.request_id)
    EXECUTE FUNCTION {schema}.leasehold_refuse('execution_identity');

CREATE TRIGGER workspace_turn_shortcuts BEFORE UPDATE ON {schema}.workspace_turn
    FOR EACH ROW WHEN (NEW.oldest_admission > OLD.oldest_admission OR NEW.stragglers <> OLD.stragglers
        OR NEW.held_at_most < OLD.held_at_most)
    EXECUTE FUNCTION {schema}.leasehold_check_shortcuts();

-- xid: the transaction that wrote the event, so that a reader that stores its snapshot finds all events that committed since.
-- rank, line_at: set if the request entered its workspace's line.
-- bytes: what the transition adds to the open bytes of the workspace: positive when the request is enqueued, negative when it ends.
-- Partition N, the table request_event_N, has the ids from N × 2^40 on. The pruner begins a new one from time to time and drops the oldest.
-- docs/adr/0025-epochs-and-schema.md explains them.
CREATE TABLE {schema}.request_event (
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    request_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    from_status text,
    to_status text NOT NULL,
    at timestamptz NOT NULL,
    rank smallint,
    line_at timestamptz,
    bytes bigint,
    by_whom text NOT NULL,
    reason text,
    CONSTRAINT request_event_pkey PRIMARY KEY (request_id, id)
) PARTITION BY RANGE (id);

CREATE INDEX request_event_commit ON {schema}.request_event (xid, id);

-- The partitions of the event log that have begun and have not expired.
-- writers: virtual transaction ids of the transactions that had written events when the partition began; they may write into earlier ones.
-- sealed: every transaction that wrote into an earlier partition has a lower number. NULL while one of the writers is open.
CREATE TABLE {schema}.event_partition (
    number bigint NOT NULL,
    begun_at timestamptz NOT NULL,
    sealed xid8,
    writers text[] NOT NULL,
    CONSTRAINT event_partition_pkey PRIMARY KEY (number)
);

INSERT INTO {schema}.event_partition (number, begun_at, sealed, writers) VALUES (0, clock_timestamp(), '3', '{}');
SELECT detach FROM {schema}.leasehold_event_tables();

-- The row with the highest id is the current one.
-- events_from: events with lower ids are folded.
-- position: events visible in this snapshot are folded into workspace_turn. round_from: no ready workspace has a lower turn.
-- folded_at: the figures of the workspaces are at least as new. A fold that finds nothing writes no row.
-- parked: workspaces whose turn row was locked; the next fold handles them.
-- Each fold inserts a new row instead of updating, so that an index scan finds the current row in one step even while an old
-- snapshot keeps dead ones.
CREATE TABLE {schema}.request_fold (
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    position pg_snapshot NOT NULL,
    folded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    round_from bigint NOT NULL,
    events_from bigint NOT NULL DEFAULT 0,
    parked uuid[] NOT NULL DEFAULT '{}',
    CONSTRAINT request_fold_pkey PRIMARY KEY (id)
);

INSERT INTO {schema}.request_fold (position, round_from) VALUES (pg_current_snapshot(), 0);

-- Idempotency keys that outlive their request, until their window ends. docs/adr/0024-store-errors-and-kept-keys.md explains them.
-- params_hash: SHA-256 of the text of the params, so that a key keeps no payload.
CREATE TABLE {schema}.kept_key (
    workspace_id uuid NOT NULL,
    request_id uuid NOT NULL,
    definition_id uuid NOT NULL,
    dedupe_until timestamptz NOT NULL,
    key text NOT NULL,
    params_hash bytea NOT NULL,
    CONSTRAINT kept_key_pkey PRIMARY KEY (workspace_id, key),
    CONSTRAINT kept_key_hash CHECK (octet_length(params_hash) = 32)
);

CREATE INDEX kept_key_until ON {schema}.kept_key (dedupe_until);

CREATE TRIGGER request_key_is_free AFTER INSERT ON {schema}.workflow_execution_queue
    FOR EACH ROW WHEN (NEW.idempotency_key IS NOT NULL)
    EXECUTE FUNCTION {schema}.leasehold_check_kept_key();
