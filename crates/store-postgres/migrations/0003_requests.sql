-- The execution queue, the executions that hold slots, the log of every transition, and what keeps them true.

-- due: TRUE waits in its workspace's line, FALSE waits for run_at, NULL is not PENDING. Only columns that change
-- together with the indexes they belong to are indexed, so that the step to COMPLETED rewrites no index.
CREATE TABLE workflow_execution_queue (
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
    lease_expires_at timestamptz,
    dedupe_until timestamptz,
    claim_token bigint NOT NULL DEFAULT 0,
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
    CONSTRAINT workflow_execution_queue_pkey PRIMARY KEY (id),
    CONSTRAINT request_status CHECK (status IN ('PENDING', 'CLAIMED', 'DISPATCHED', 'COMPLETED', 'FAILED')),
    -- What every program can read: PostgreSQL knows times that others do not.
    CONSTRAINT request_run_at CHECK (run_at >= '0001-01-01 00:00:00+00' AND run_at < '9999-01-01 00:00:00+00'),
    CONSTRAINT request_dedupe_until CHECK (dedupe_until < '9999-01-01 00:00:00+00'),
    CONSTRAINT request_priority CHECK (priority BETWEEN -1000 AND 1000),
    CONSTRAINT request_due CHECK ((status = 'PENDING') = (due IS NOT NULL)),
    CONSTRAINT request_claim_fields CHECK (
        (status = 'CLAIMED') = (claimed_by IS NOT NULL) AND (status = 'CLAIMED') = (lease_expires_at IS NOT NULL)
    ),
    CONSTRAINT request_claimed_at CHECK (
        CASE status WHEN 'PENDING' THEN claimed_at IS NULL WHEN 'FAILED' THEN true ELSE claimed_at IS NOT NULL END
    ),
    CONSTRAINT request_dispatched_at CHECK (
        CASE WHEN status IN ('DISPATCHED', 'COMPLETED') THEN dispatched_at IS NOT NULL
            WHEN status = 'FAILED' THEN true ELSE dispatched_at IS NULL END
    ),
    CONSTRAINT request_execution CHECK (execution_id IS NOT NULL OR status IN ('PENDING', 'FAILED')),
    CONSTRAINT request_finished CHECK ((status IN ('COMPLETED', 'FAILED')) = (finished_at IS NOT NULL)),
    CONSTRAINT request_failure_reason CHECK (
        (status = 'FAILED') = (failure_reason IS NOT NULL) AND failure_reason IN (
            'dispatch_exhausted', 'workspace_not_found', 'definition_not_found', 'version_not_found',
            'execution_failed', 'timed_out', 'terminated', 'cancelled', 'engine_lost')
    ),
    CONSTRAINT request_attempts CHECK (dispatch_failures >= 0 AND attempt_count >= dispatch_failures),
    CONSTRAINT request_redrive CHECK (live_redrive_of IS NULL OR live_redrive_of = redrive_of),
    CONSTRAINT request_live_redrive CHECK (
        redrive_of IS NULL OR (live_redrive_of IS NULL) = (status IN ('COMPLETED', 'FAILED'))
    ),
    CONSTRAINT request_key_length CHECK (length(idempotency_key) BETWEEN 1 AND 255)
) WITH (fillfactor = 80);

CREATE INDEX request_line ON workflow_execution_queue (workspace_id, rank, created_at, id)
    WHERE due AND execution_id IS NULL;
CREATE INDEX request_kept ON workflow_execution_queue (created_at, id) WHERE due AND execution_id IS NOT NULL;
CREATE INDEX request_not_due ON workflow_execution_queue (run_at) WHERE NOT due;
CREATE INDEX request_lease ON workflow_execution_queue (lease_expires_at) WHERE lease_expires_at IS NOT NULL;
CREATE UNIQUE INDEX request_list ON workflow_execution_queue (workspace_id, id);
CREATE INDEX request_failed ON workflow_execution_queue (workspace_id, id) WHERE failure_reason IS NOT NULL;
CREATE INDEX request_redrivable ON workflow_execution_queue (workspace_id, id)
    WHERE failure_reason IS NOT NULL AND NOT redriven;
CREATE INDEX request_failed_at ON workflow_execution_queue (failed_at) WHERE failed_at IS NOT NULL;
CREATE UNIQUE INDEX request_idempotency_key ON workflow_execution_queue (workspace_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX request_dedupe_until ON workflow_execution_queue (dedupe_until)
    WHERE idempotency_key IS NOT NULL AND dedupe_until IS NOT NULL;
CREATE UNIQUE INDEX request_one_live_redrive ON workflow_execution_queue (live_redrive_of)
    WHERE live_redrive_of IS NOT NULL;

CREATE TRIGGER request_begins_pending BEFORE INSERT ON workflow_execution_queue
    FOR EACH ROW WHEN (NEW.status <> 'PENDING')
    EXECUTE FUNCTION leasehold_refuse('request_transition');
CREATE TRIGGER request_transition BEFORE UPDATE ON workflow_execution_queue
    FOR EACH ROW WHEN (OLD.status <> NEW.status AND NOT (CASE OLD.status
        WHEN 'PENDING' THEN NEW.status = 'CLAIMED' OR (NEW.status = 'FAILED' AND NEW.failure_reason IN (
            'cancelled', 'workspace_not_found', 'definition_not_found', 'version_not_found'))
        WHEN 'CLAIMED' THEN NEW.status IN ('DISPATCHED', 'PENDING', 'FAILED')
        WHEN 'DISPATCHED' THEN NEW.status IN ('COMPLETED', 'FAILED')
        ELSE false END))
    EXECUTE FUNCTION leasehold_refuse('request_transition');

CREATE TRIGGER request_identity BEFORE UPDATE ON workflow_execution_queue
    FOR EACH ROW WHEN (OLD.id <> NEW.id OR OLD.workspace_id <> NEW.workspace_id)
    EXECUTE FUNCTION leasehold_refuse('request_identity');

-- A RUNNING execution is the use of a slot; there is no other record of it.
CREATE TABLE workflow_execution (
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
        REFERENCES workflow_execution_queue (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT execution_status CHECK (status IN ('RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED')),
    CONSTRAINT execution_finished CHECK ((status = 'RUNNING') = (finished_at IS NULL))
) WITH (fillfactor = 80);

CREATE INDEX execution_running ON workflow_execution (workspace_id, admission) WHERE status = 'RUNNING';
CREATE INDEX execution_completed ON workflow_execution (finished_at) WHERE status = 'COMPLETED';

CREATE FUNCTION leasehold_running(workspace uuid, oldest bigint, stragglers bigint[]) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT (
        SELECT count(*) FROM workflow_execution
        WHERE workspace_id = workspace AND status = 'RUNNING' AND admission >= oldest
    ) + (
        -- One by one: as a condition on the whole they would be looked for among all that ever ran.
        SELECT count(*) FROM unnest(stragglers) AS s (admission) CROSS JOIN LATERAL (
            SELECT 1 FROM workflow_execution e
            WHERE e.workspace_id = workspace AND e.status = 'RUNNING' AND e.admission = s.admission
            LIMIT 1
        ) e
    )
$$;

-- No workspace has more RUNNING executions than its limit, whoever writes. The turn row is written, not only locked,
-- so that a transaction that counts with an old snapshot fails instead of counting wrong. Where another transaction
-- writes the row meanwhile the first try finds nothing to update; the second begins with the lock.
CREATE FUNCTION leasehold_take_slots(workspaces uuid[], slots bigint[], lowest bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    refused uuid;
    served bigint;
BEGIN
    FOR try IN 1..2 LOOP
        WITH taken AS (
            UPDATE workspace_turn t
            SET held_at_most = CASE WHEN t.held_at_most + w.slots <= t.concurrency_limit THEN t.held_at_most + w.slots
                    -- leasehold_running, written out here and below: the call costs more than the count.
                    ELSE (
                        SELECT count(*) FROM workflow_execution e
                        WHERE e.workspace_id = w.id AND e.status = 'RUNNING' AND e.admission >= t.oldest_admission
                    ) + (
                        SELECT count(*) FROM unnest(t.stragglers) AS s (admission) CROSS JOIN LATERAL (
                            SELECT 1 FROM workflow_execution e
                            WHERE e.workspace_id = w.id AND e.status = 'RUNNING' AND e.admission = s.admission
                            LIMIT 1
                        ) e
                    ) END,
                written_by = pg_current_xact_id()
            FROM unnest(workspaces, slots, lowest) AS w (id, slots, lowest) CROSS JOIN LATERAL (
                SELECT ctid AS tid, written_by FROM workspace_turn WHERE workspace_id = w.id ORDER BY turn DESC LIMIT 1
            ) n
            -- written_by too, since older releases do not check ctid again after waiting for the row.
            WHERE t.ctid = n.tid AND t.written_by = n.written_by
            RETURNING t.workspace_id, t.held_at_most > t.concurrency_limit OR w.lowest < t.oldest_admission AS refused
        )
        SELECT count(*), (array_agg(workspace_id) FILTER (WHERE taken.refused))[1] INTO served, refused FROM taken;
        EXIT WHEN served = cardinality(workspaces);
        -- What the first try did write is counted a second time then: held_at_most may be too high, never too low.
        PERFORM 1 FROM unnest(workspaces) AS w (id) CROSS JOIN LATERAL (
            SELECT 1 FROM workspace_turn WHERE workspace_id = w.id ORDER BY turn DESC LIMIT 1 FOR UPDATE
        ) t;
    END LOOP;
    IF refused IS NOT NULL OR served < cardinality(workspaces) THEN
        RAISE EXCEPTION 'workspace % has no free slot', coalesce(refused, workspaces[1])
            USING ERRCODE = 'check_violation', CONSTRAINT = 'workspace_limit', TABLE = 'workflow_execution';
    END IF;
END
$$;

CREATE FUNCTION leasehold_execution_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM leasehold_take_slots(array_agg(i.workspace_id), array_agg(i.slots), array_agg(i.lowest))
    FROM (
        SELECT workspace_id, count(*) AS slots, min(admission) AS lowest
        FROM inserted WHERE status = 'RUNNING' GROUP BY workspace_id ORDER BY workspace_id
    ) i
    HAVING count(*) > 0;
    RETURN NULL;
END
$$;

CREATE FUNCTION leasehold_execution_updated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM leasehold_take_slots(ARRAY[NEW.workspace_id], ARRAY[1], ARRAY[NEW.admission]);
    RETURN NULL;
END
$$;

CREATE TRIGGER execution_takes_slot AFTER INSERT ON workflow_execution
    REFERENCING NEW TABLE AS inserted
    FOR EACH STATEMENT EXECUTE FUNCTION leasehold_execution_inserted();
CREATE TRIGGER execution_takes_slot_again AFTER UPDATE ON workflow_execution
    FOR EACH ROW WHEN (NEW.status = 'RUNNING' AND (OLD.status <> 'RUNNING' OR NEW.admission <> OLD.admission))
    EXECUTE FUNCTION leasehold_execution_updated();
CREATE TRIGGER execution_identity BEFORE UPDATE ON workflow_execution
    FOR EACH ROW WHEN (OLD.id <> NEW.id OR OLD.workspace_id <> NEW.workspace_id OR OLD.request_id <> NEW.request_id)
    EXECUTE FUNCTION leasehold_refuse('execution_identity');

-- The shortcuts of the count are checked when they move in a way that could hide an execution.
CREATE FUNCTION leasehold_check_shortcuts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    hides boolean := false;
BEGIN
    IF NEW.oldest_admission > OLD.oldest_admission THEN
        hides := EXISTS (
            SELECT 1 FROM workflow_execution e
            WHERE e.workspace_id = NEW.workspace_id AND e.status = 'RUNNING'
                AND e.admission >= OLD.oldest_admission AND e.admission < NEW.oldest_admission
                AND NOT (e.admission = ANY (NEW.stragglers)));
    END IF;
    IF NEW.stragglers <> OLD.stragglers THEN
        hides := hides OR EXISTS (
            SELECT 1 FROM (SELECT unnest(OLD.stragglers) EXCEPT SELECT unnest(NEW.stragglers)) AS s (admission)
            CROSS JOIN LATERAL (
                SELECT 1 FROM workflow_execution e
                WHERE e.workspace_id = NEW.workspace_id AND e.status = 'RUNNING' AND e.admission = s.admission
                LIMIT 1
            ) e);
    END IF;
    IF NEW.held_at_most < OLD.held_at_most THEN
        hides := hides OR NEW.held_at_most < (
            SELECT count(*) FROM workflow_execution e
            WHERE e.workspace_id = NEW.workspace_id AND e.status = 'RUNNING' AND e.admission >= NEW.oldest_admission
        ) + (
            SELECT count(*) FROM unnest(NEW.stragglers) AS s (admission) CROSS JOIN LATERAL (
                SELECT 1 FROM workflow_execution e
                WHERE e.workspace_id = NEW.workspace_id AND e.status = 'RUNNING' AND e.admission = s.admission
                LIMIT 1
            ) e
        );
    END IF;
    IF hides THEN
        RAISE EXCEPTION 'workspace % has more running executions than that', NEW.workspace_id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'workspace_limit', TABLE = 'workspace_turn';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER workspace_turn_shortcuts BEFORE UPDATE ON workspace_turn
    FOR EACH ROW WHEN (NEW.oldest_admission > OLD.oldest_admission OR NEW.stragglers <> OLD.stragglers
        OR NEW.held_at_most < OLD.held_at_most)
    EXECUTE FUNCTION leasehold_check_shortcuts();

-- xid says which transaction wrote the event, so a reader that keeps its snapshot finds what committed since,
-- however late. rank and line_at are set where the request entered its workspace's line.
CREATE TABLE request_event (
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    request_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    from_status text,
    to_status text NOT NULL,
    at timestamptz NOT NULL,
    rank smallint,
    line_at timestamptz,
    by_whom text NOT NULL,
    reason text,
    CONSTRAINT request_event_pkey PRIMARY KEY (request_id, id)
);

CREATE INDEX request_event_commit ON request_event (xid, id);

-- Which cluster of databases this is: its transaction numbers mean nothing in another.
CREATE FUNCTION leasehold_cluster() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT system_identifier FROM pg_control_system()
$$;

-- The snapshot up to which events are folded into workspace_turn; a number below which no ready workspace has its turn;
-- and the workspaces whose turn row was busy, which wait for the next fold: the row with the highest id. A new row each time and never an update, so that finding it stays one step even
-- while an old snapshot keeps its dead predecessors.
CREATE TABLE request_fold (
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    position pg_snapshot NOT NULL,
    round_from bigint NOT NULL,
    parked uuid[] NOT NULL DEFAULT '{}',
    cluster bigint NOT NULL DEFAULT (leasehold_cluster()),
    CONSTRAINT request_fold_pkey PRIMARY KEY (id)
);

INSERT INTO request_fold (position, round_from) VALUES (pg_current_snapshot(), 0);
