CREATE SCHEMA leasehold;

CREATE FUNCTION leasehold.leasehold_begin(p_server_started_at timestamp with time zone, p_database oid) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF pg_postmaster_start_time() <> p_server_started_at
        OR (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()) IS DISTINCT FROM p_database
    THEN
        RAISE EXCEPTION 'the database server was restarted, failed over or replaced since this process connected to it; the call changed nothing'
            USING ERRCODE = 'LH001', HINT = 'Repeat the call.';
    END IF;
END
$$;

CREATE FUNCTION leasehold.leasehold_check_epoch() RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
BEGIN
    IF (SELECT e.system_identifier FROM "leasehold".epoch e ORDER BY e.number DESC, e.opened_at DESC, e.id DESC LIMIT 1)
        <> (SELECT s.system_identifier FROM pg_control_system() s)
    THEN
        RAISE EXCEPTION 'the database was moved to another cluster, and no instance of Leasehold has connected to it since'
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Start an instance of Leasehold, then repeat the transaction.';
    END IF;
END
$$;

CREATE FUNCTION leasehold.leasehold_check_kept_key() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
BEGIN
    IF pg_catalog.current_setting('transaction_isolation'::text) IN ('repeatable read'::text, 'serializable'::text) THEN
        INSERT INTO "leasehold".kept_key (workspace_id, request_id, definition_id, dedupe_until, key, params_hash)
        VALUES (NEW.workspace_id, NEW.id, NEW.definition_id, NEW.created_at, NEW.idempotency_key,
            pg_catalog.sha256(''::bytea))
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            DELETE FROM "leasehold".kept_key k WHERE k.workspace_id = NEW.workspace_id AND k.key = NEW.idempotency_key;
            RETURN NULL;
        END IF;
    END IF;
    PERFORM 1 FROM "leasehold".kept_key k
    WHERE k.workspace_id = NEW.workspace_id AND k.key = NEW.idempotency_key AND k.dedupe_until > NEW.created_at;
    IF FOUND THEN
        RAISE EXCEPTION 'idempotency key "%" is kept for a pruned request; retry the transaction', NEW.idempotency_key
            USING ERRCODE = 'serialization_failure', CONSTRAINT = 'request_idempotency_key', TABLE = 'workflow_execution_queue';
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION leasehold.leasehold_check_options(called text, options jsonb, known text[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'leasehold', 'pg_temp'
    AS $$
DECLARE
    unknown text;
BEGIN
    IF jsonb_typeof(options) <> 'object' THEN
        RAISE EXCEPTION '%: options must be a JSON object, not %', called, jsonb_typeof(options)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT o.name INTO unknown FROM jsonb_object_keys(options) AS o (name) WHERE o.name <> ALL (known) ORDER BY o.name LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '%: unknown option "%"', called, unknown
            USING ERRCODE = 'invalid_parameter_value',
                HINT = CASE WHEN pg_catalog.cardinality(known) = 0 THEN 'This version has no options.'
                    ELSE 'Options of this version: ' || pg_catalog.array_to_string(known, ', ') END;
    END IF;
END
$$;

CREATE FUNCTION leasehold.leasehold_check_quota(of_workspace uuid, added bigint, moment timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
DECLARE
    quota record;
    enqueued jsonb := coalesce(nullif(pg_catalog.current_setting('leasehold.enqueued'::text, true), ''::text)::jsonb, '{}'::jsonb);
    kept jsonb := enqueued -> of_workspace::text;
    own_requests bigint := coalesce((kept ->> 0)::bigint, 0::bigint);
    own_bytes bigint := coalesce((kept ->> 1)::bigint, 0::bigint);
    late_requests bigint := 0::bigint;
    late_bytes bigint := 0::bigint;
    present bigint := (extract(epoch FROM moment) * 1000000::numeric)::bigint;
    read_at bigint := 0::bigint;
BEGIN
    -- One statement: a fold between two would be counted twice or not at all.
    SELECT w.max_pending, w.max_open_bytes, t.pending, t.open_bytes, f.id AS fold, f.position, f.events_from,
        f.folded_at NOT BETWEEN moment - '1 second'::interval AND moment + '1 second'::interval OR of_workspace = ANY (f.parked) AS is_old INTO quota
    FROM "leasehold".workspace w CROSS JOIN LATERAL (
        SELECT t.pending, t.open_bytes FROM "leasehold".workspace_turn t WHERE t.workspace_id = w.id ORDER BY t.turn DESC LIMIT 1
    ) t CROSS JOIN LATERAL (
        SELECT f.id, f.position, f.events_from, f.parked, f.folded_at FROM "leasehold".request_fold f ORDER BY f.id DESC LIMIT 1
    ) f
    WHERE w.id = of_workspace;
    IF quota.is_old AND (kept ->> 4)::bigint = quota.fold
        AND abs(present - (kept ->> 5)::bigint) < 1000000::bigint
    THEN
        late_requests := (kept ->> 2)::bigint;
        late_bytes := (kept ->> 3)::bigint;
        read_at := (kept ->> 5)::bigint;
    ELSIF quota.is_old THEN
        read_at := present;
        SELECT coalesce(sum(e.pending), 0)::bigint, coalesce(sum(e.bytes), 0)::bigint INTO late_requests, late_bytes
        FROM (
            SELECT workspace_id, xid, (to_status = 'PENDING'::text)::int - (from_status IS NOT DISTINCT FROM 'PENDING'::text)::int AS pending,
                bytes
            FROM (
                SELECT workspace_id, xid, from_status, to_status, bytes FROM "leasehold".request_event
                WHERE xid >= pg_snapshot_xmax(quota.position) AND id >= quota.events_from
                UNION ALL
                SELECT workspace_id, xid, from_status, to_status, bytes FROM "leasehold".request_event
                WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(quota.position))) AND id >= quota.events_from
            ) fresh
            UNION ALL
            SELECT workspace_id, xid, pending, open_bytes FROM "leasehold".workspace_delta WHERE xid >= pg_snapshot_xmax(quota.position)
            UNION ALL
            SELECT workspace_id, xid, pending, open_bytes FROM "leasehold".workspace_delta
            WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(quota.position)))
        ) e
        WHERE e.workspace_id = of_workspace AND e.xid IS DISTINCT FROM pg_current_xact_id_if_assigned();
    END IF;
    PERFORM pg_catalog.set_config('leasehold.enqueued'::text, (enqueued || pg_catalog.jsonb_build_object(of_workspace::text,
        pg_catalog.jsonb_build_array(own_requests + 1::bigint, own_bytes + added, late_requests, late_bytes, quota.fold, read_at)))::text, true);
    own_requests := own_requests + late_requests;
    own_bytes := own_bytes + late_bytes;
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
$$;

CREATE FUNCTION leasehold.leasehold_check_request() RETURNS trigger
    LANGUAGE plpgsql
    AS $_$
DECLARE
    -- As with CHECK, a rule that is NULL is not violated. OLD is NULL in an INSERT.
    violated text := CASE
        WHEN OLD.id <> NEW.id OR OLD.workspace_id <> NEW.workspace_id THEN 'request_identity'::text
        WHEN NEW.status <> ALL ('{PENDING,CLAIMED,DISPATCHED,COMPLETED,FAILED}'::text[]) THEN 'request_status'::text
        WHEN OLD.status IS DISTINCT FROM NEW.status AND NOT (CASE OLD.status
            WHEN 'PENDING'::text THEN NEW.status = 'CLAIMED'::text OR (NEW.status = 'FAILED'::text AND NEW.failure_reason = ANY (
                '{cancelled,workspace_not_found,definition_not_found,version_not_found}'::text[]))
            WHEN 'CLAIMED'::text THEN NEW.status = ANY ('{DISPATCHED,PENDING,FAILED}'::text[])
            WHEN 'DISPATCHED'::text THEN NEW.status = ANY ('{COMPLETED,FAILED}'::text[])
            ELSE OLD.status IS NULL AND NEW.status = 'PENDING'::text END) THEN 'request_transition'::text
        WHEN (NEW.status = 'PENDING'::text) <> (NEW.due IS NOT NULL) THEN 'request_due'::text
        WHEN (NEW.status = 'CLAIMED'::text) <> (NEW.claimed_by IS NOT NULL)
            OR (NEW.status = 'CLAIMED'::text) <> (NEW.lease_expires_at IS NOT NULL) THEN 'request_claim_fields'::text
        WHEN NEW.status <> 'FAILED'::text AND (NEW.status = 'PENDING'::text) <> (NEW.claimed_at IS NULL)
            THEN 'request_claimed_at'::text
        WHEN NEW.status <> 'FAILED'::text
            AND (NEW.status = ANY ('{DISPATCHED,COMPLETED}'::text[])) <> (NEW.dispatched_at IS NOT NULL)
            THEN 'request_dispatched_at'::text
        WHEN NEW.execution_id IS NULL AND NEW.status <> ALL ('{PENDING,FAILED}'::text[]) THEN 'request_execution'::text
        WHEN (NEW.status = ANY ('{COMPLETED,FAILED}'::text[])) <> (NEW.finished_at IS NOT NULL) THEN 'request_finished'::text
        WHEN (NEW.status = 'FAILED'::text) <> (NEW.failure_reason IS NOT NULL) OR NEW.failure_reason !~ '^[a-z_]{1,64}$'::text
            THEN 'request_failure_reason'::text
        WHEN NEW.dispatch_failures < 0 OR NEW.attempt_count < NEW.dispatch_failures THEN 'request_attempts'::text
        WHEN NEW.live_redrive_of <> NEW.redrive_of OR (NEW.live_redrive_of IS NOT NULL AND NEW.redrive_of IS NULL)
            THEN 'request_redrive'::text
        WHEN NEW.redrive_of IS NOT NULL AND (NEW.live_redrive_of IS NULL) <> (NEW.finished_at IS NOT NULL)
            THEN 'request_live_redrive'::text
        WHEN NEW.cancel_requested_at IS NULL AND (NEW.cancel_force OR NEW.cancel_told_at IS NOT NULL) THEN 'request_cancel'::text
        WHEN NEW.bytes < 0 OR NEW.execution_bytes < 0 THEN 'request_bytes'::text
        WHEN pg_catalog.num_nulls(NEW.crashes, NEW.crashes_alone, NEW.crashed_process) <> ALL ('{0,3}'::integer[])
            OR NEW.crashes < 1 OR NEW.crashes_alone < 0 OR NEW.crashes_alone > NEW.crashes THEN 'request_crashes'::text
        WHEN NEW.priority < -1000 OR NEW.priority > 1000 THEN 'request_priority'::text
        WHEN NEW.idempotency_key = ''::text OR pg_catalog.length(NEW.idempotency_key) > 255 THEN 'request_key_length'::text
        -- PostgreSQL accepts times that other programs cannot represent.
        WHEN NEW.run_at < '0001-01-01 00:00:00+00'::timestamptz OR NEW.run_at >= '9999-01-01 00:00:00+00'::timestamptz
            THEN 'request_run_at'::text
        WHEN NEW.dedupe_until >= '9999-01-01 00:00:00+00'::timestamptz THEN 'request_dedupe_until'::text
    END;
BEGIN
    IF violated IS NULL THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'write violates constraint "%" of table "%"', violated, TG_TABLE_NAME
        USING ERRCODE = 'check_violation', CONSTRAINT = violated, TABLE = TG_TABLE_NAME;
END
$_$;

CREATE FUNCTION leasehold.leasehold_check_shortcuts() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
DECLARE
    hides boolean := false;
BEGIN
    IF NEW.oldest_admission > OLD.oldest_admission THEN
        hides := EXISTS (
            SELECT 1 FROM "leasehold".workflow_execution e
            WHERE e.workspace_id = NEW.workspace_id AND e.status = 'RUNNING'
                AND e.admission >= OLD.oldest_admission AND e.admission < NEW.oldest_admission
                AND NOT (e.admission = ANY (NEW.stragglers)));
    END IF;
    IF NEW.stragglers <> OLD.stragglers THEN
        hides := hides OR EXISTS (
            SELECT 1 FROM (SELECT unnest(OLD.stragglers) EXCEPT SELECT unnest(NEW.stragglers)) AS s (admission)
            CROSS JOIN LATERAL (
                SELECT 1 FROM "leasehold".workflow_execution e
                WHERE e.workspace_id = NEW.workspace_id AND e.status = 'RUNNING' AND e.admission = s.admission
                LIMIT 1
            ) e);
    END IF;
    IF NEW.held_at_most < OLD.held_at_most THEN
        hides := hides OR NEW.held_at_most < (
            SELECT count(*) FROM "leasehold".workflow_execution e
            WHERE e.workspace_id = NEW.workspace_id AND e.status = 'RUNNING' AND e.admission >= NEW.oldest_admission
        ) + (
            SELECT count(*) FROM unnest(NEW.stragglers) AS s (admission) CROSS JOIN LATERAL (
                SELECT 1 FROM "leasehold".workflow_execution e
                WHERE e.workspace_id = NEW.workspace_id AND e.status = 'RUNNING' AND e.admission = s.admission
                LIMIT 1
            ) e
        );
    END IF;
    IF hides THEN
        RAISE EXCEPTION 'workspace_turn of workspace % must count every RUNNING execution', NEW.workspace_id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'workspace_limit', TABLE = 'workspace_turn';
    END IF;
    RETURN NEW;
END
$$;

CREATE FUNCTION leasehold.leasehold_count_running(workspace uuid, oldest bigint, stragglers bigint[]) RETURNS bigint
    LANGUAGE sql STABLE
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
    SELECT (
        SELECT count(*) FROM "leasehold".workflow_execution
        WHERE workspace_id = workspace AND status = 'RUNNING' AND admission >= oldest
    ) + (
        -- LATERAL, one by one: as a condition of the query above it would scan all executions that ever ran.
        SELECT count(*) FROM unnest(stragglers) AS s (admission) CROSS JOIN LATERAL (
            SELECT 1 FROM "leasehold".workflow_execution e
            WHERE e.workspace_id = workspace AND e.status = 'RUNNING' AND e.admission = s.admission
            LIMIT 1
        ) e
    )
$$;

CREATE FUNCTION leasehold.leasehold_enqueue(workspace_id uuid, definition_id uuid, params jsonb DEFAULT 'null'::jsonb, priority integer DEFAULT 0, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, idempotency_key text DEFAULT NULL::text, dedupe_window interval DEFAULT NULL::interval, trace_context text DEFAULT NULL::text, enqueued_by text DEFAULT 'sql'::text, options jsonb DEFAULT NULL::jsonb) RETURNS uuid
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    definition "leasehold".workflow_definition;
    request "leasehold".workflow_execution_queue;
    kept "leasehold".kept_key;
    requested_key ALIAS FOR idempotency_key;
    moment timestamptz := clock_timestamp();
    size integer;
BEGIN
    IF leasehold_enqueue.options IS NOT NULL THEN
        PERFORM "leasehold".leasehold_check_options('leasehold_enqueue'::text, leasehold_enqueue.options, '{schema_checked}'::text[]);
        IF jsonb_typeof(leasehold_enqueue.options -> 'schema_checked'::text) <> 'boolean'::text THEN
            RAISE EXCEPTION 'leasehold_enqueue: option schema_checked must be true or false' USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END IF;
    IF pg_postmaster_start_time() IS DISTINCT FROM (
        SELECT e.server_started_at FROM "leasehold".epoch e ORDER BY e.number DESC, e.opened_at DESC, e.id DESC LIMIT 1)
    THEN
        PERFORM "leasehold".leasehold_check_epoch();
    END IF;
    PERFORM 1 FROM "leasehold".workspace w WHERE w.id = leasehold_enqueue.workspace_id AND w.deleted_at IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'workspace % not found', leasehold_enqueue.workspace_id USING ERRCODE = 'no_data_found';
    END IF;
    SELECT d.* INTO definition FROM "leasehold".workflow_definition d
    WHERE d.id = leasehold_enqueue.definition_id AND d.deleted_at IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'definition % not found', leasehold_enqueue.definition_id USING ERRCODE = 'no_data_found';
    ELSIF definition.workspace_id <> leasehold_enqueue.workspace_id THEN
        RAISE EXCEPTION 'definition % belongs to another workspace', leasehold_enqueue.definition_id
            USING ERRCODE = 'insufficient_privilege';
    ELSIF definition.current_version_id IS NULL THEN
        RAISE EXCEPTION 'definition % has no published version', leasehold_enqueue.definition_id
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    IF NOT coalesce((leasehold_enqueue.options ->> 'schema_checked'::text)::boolean, false) AND EXISTS (
        SELECT FROM "leasehold".workflow_definition_version v WHERE v.id = definition.current_version_id AND v.params_schema IS NOT NULL)
    THEN
        RAISE EXCEPTION 'the current version of definition % has a params schema, which leasehold_enqueue cannot check',
            leasehold_enqueue.definition_id
            USING ERRCODE = 'feature_not_supported',
                HINT = 'Check the params in your application and pass options => ''{"schema_checked": true}'', or enqueue through the API.';
    END IF;
    size := octet_length(coalesce(leasehold_enqueue.params, 'null'::jsonb)::text);
    IF size > 262144 THEN
        RAISE EXCEPTION 'params must be at most 262144 bytes of JSON, got %', size USING ERRCODE = 'program_limit_exceeded';
    END IF;
    IF NOT "leasehold".leasehold_is_readable(leasehold_enqueue.params) THEN
        RAISE EXCEPTION 'params must not be nested deeper than 64 levels, nor contain numbers beyond 1.7e308'
            USING ERRCODE = 'program_limit_exceeded';
    END IF;
    IF requested_key IS NOT NULL THEN
        UPDATE "leasehold".workflow_execution_queue q SET idempotency_key = NULL, dedupe_until = NULL
        WHERE q.workspace_id = leasehold_enqueue.workspace_id AND q.idempotency_key = requested_key AND q.dedupe_until <= moment;
        SELECT k.* INTO kept FROM "leasehold".kept_key k
        WHERE k.workspace_id = leasehold_enqueue.workspace_id AND k.key = requested_key AND k.dedupe_until > moment;
        IF FOUND THEN
            IF kept.definition_id <> leasehold_enqueue.definition_id OR kept.params_hash <> pg_catalog.sha256(
                pg_catalog.convert_to(coalesce(leasehold_enqueue.params, 'null'::jsonb)::text, 'UTF8'::name))
            THEN
                RAISE EXCEPTION 'idempotency key "%" is held by request % with other params', requested_key, kept.request_id
                    USING ERRCODE = 'unique_violation', CONSTRAINT = 'request_idempotency_key';
            END IF;
            RETURN kept.request_id;
        END IF;
    END IF;
    -- 1024: REQUEST_OVERHEAD_BYTES of the core. A request whose key is held is not inserted, so it needs no room.
    size := size + 1024;
    IF requested_key IS NULL OR NOT EXISTS (
        SELECT FROM "leasehold".workflow_execution_queue q
        WHERE q.workspace_id = leasehold_enqueue.workspace_id AND q.idempotency_key = requested_key)
    THEN
        PERFORM "leasehold".leasehold_check_quota(leasehold_enqueue.workspace_id, size::bigint, moment);
    END IF;
    INSERT INTO "leasehold".workflow_execution_queue AS q
        (id, workspace_id, definition_id, version_id, priority, due, run_at, created_at, params, idempotency_key,
        dedupe_until, trace_context, bytes)
    VALUES ("leasehold".leasehold_uuid7(), leasehold_enqueue.workspace_id, definition.id, definition.current_version_id,
        leasehold_enqueue.priority, coalesce(leasehold_enqueue.run_at, moment) <= moment,
        coalesce(leasehold_enqueue.run_at, moment), moment, coalesce(leasehold_enqueue.params, 'null'), requested_key,
        moment + leasehold_enqueue.dedupe_window, left(leasehold_enqueue.trace_context, 1024), size)
    ON CONFLICT (workspace_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
    RETURNING q.* INTO request;
    IF FOUND THEN
        INSERT INTO "leasehold".request_event (request_id, workspace_id, to_status, at, rank, line_at, by_whom, bytes)
        VALUES (request.id, request.workspace_id, 'PENDING', moment, CASE WHEN request.due THEN request.rank END,
            CASE WHEN request.due THEN request.created_at END, leasehold_enqueue.enqueued_by, size);
        PERFORM "leasehold".leasehold_notify();
        RETURN request.id;
    END IF;
    SELECT q.* INTO request FROM "leasehold".workflow_execution_queue q
    WHERE q.workspace_id = leasehold_enqueue.workspace_id AND q.idempotency_key = requested_key;
    IF request.id IS NULL THEN
        RAISE EXCEPTION 'idempotency key "%" was released concurrently; retry the transaction', requested_key USING ERRCODE = 'serialization_failure';
    ELSIF request.definition_id <> leasehold_enqueue.definition_id
        OR request.params <> coalesce(leasehold_enqueue.params, 'null')
    THEN
        RAISE EXCEPTION 'idempotency key "%" is held by request % with other params', requested_key, request.id
            USING ERRCODE = 'unique_violation', CONSTRAINT = 'request_idempotency_key';
    END IF;
    RETURN request.id;
END
$$;

CREATE FUNCTION leasehold.leasehold_epoch_open(p_by text, p_seen_xid bigint, p_seen_job bigint) RETURNS TABLE(id bigint, cause text, token_base bigint, job_xid_offset bigint, first_event_id bigint, opened boolean)
    LANGUAGE plpgsql
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    jump CONSTANT bigint := 4294967296;
    here record;
    last "leasehold".epoch;
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
        SELECT e.* INTO last FROM "leasehold".epoch e ORDER BY e.number DESC, e.opened_at DESC, e.id DESC LIMIT 1;
        is_renumbered := coalesce(last.system_identifier <> here.system_identifier, false) OR coalesce((
            SELECT pg_snapshot_xmax(f.position) > pg_snapshot_xmax(pg_current_snapshot())
            FROM "leasehold".request_fold f ORDER BY f.id DESC LIMIT 1), false);
        is_known := coalesce(NOT is_renumbered AND last.server_started_at = here.server_started_at AND last.timeline = here.timeline
            AND last.database = here.database, false);
        IF is_known THEN
            is_rewound := last.cause = 'restarted'
                AND (p_seen_xid::text::xid8 > last.start_xid OR p_seen_job > (SELECT s.last_value FROM "leasehold".job_id s));
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
    is_rewound := coalesce(is_rewound, false) OR p_seen_xid::text::xid8 > start OR p_seen_job > (SELECT s.last_value FROM "leasehold".job_id s);
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
        WHERE s.subenabled AND c.relnamespace = '"leasehold"'::regnamespace)
    THEN
        RAISE EXCEPTION 'a subscription still writes the tables of Leasehold in this database; drop it when its publisher has stopped'
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    IF new_cause <> 'created' THEN
        base := greatest((extract(epoch FROM clock_timestamp() - '2026-01-01 00:00:00+00'::timestamptz) * 1000::numeric)::bigint << 10,
            last.token_base + jump, last.mark_job_token + jump, (SELECT s.last_value FROM "leasehold".job_token s) + jump,
            coalesce((SELECT max(l.token) FROM "leasehold".job_lease l), 0) + jump);
        PERFORM setval('"leasehold".job_token'::regclass, base);
    END IF;
    IF new_cause NOT IN ('created', 'restarted') THEN
        -- A move by logical replication does not bring sequences, but marks, which are seconds old.
        PERFORM setval('"leasehold".job_id'::regclass, jump + greatest((SELECT s.last_value FROM "leasehold".job_id s), last.mark_job_id,
                (SELECT max(j.id) FROM "leasehold".job j), p_seen_job)),
            setval('"leasehold".admission_number'::regclass, jump + greatest((SELECT s.last_value FROM "leasehold".admission_number s),
                last.mark_admission, (SELECT max(t.turn) FROM "leasehold".workspace_turn t))),
            -- In a moved epoch, events continue with a new partition.
            CASE WHEN new_cause <> 'moved' THEN setval('"leasehold".request_event_id_seq'::regclass, jump + greatest(
                (SELECT s.last_value FROM "leasehold".request_event_id_seq s), last.mark_event_id,
                (SELECT max(p.number) << 40 FROM "leasehold".event_partition p), (SELECT max(f.events_from) FROM "leasehold".request_fold f))) END,
            setval('"leasehold".workspace_delta_id_seq'::regclass, jump + greatest((SELECT s.last_value FROM "leasehold".workspace_delta_id_seq s),
                (SELECT max(d.id) FROM "leasehold".workspace_delta d))),
            setval('"leasehold".request_fold_id_seq'::regclass, jump + greatest((SELECT s.last_value FROM "leasehold".request_fold_id_seq s),
                (SELECT max(f.id) FROM "leasehold".request_fold f))),
            setval('"leasehold".queue_id_seq'::regclass, 1 + greatest((SELECT s.last_value FROM "leasehold".queue_id_seq s),
                (SELECT max(q.id) FROM "leasehold".queue q)));
    END IF;

    shift := coalesce(last.job_xid_offset, 0);
    first_event := coalesce(last.first_event_id, 0);
    IF new_cause = 'moved' THEN
        first_event := "leasehold".leasehold_event_adopt();
        -- Every number of a waiting line is one of another cluster: new ones must be above.
        SELECT greatest(shift, max(n.xid)) INTO shift FROM (
            SELECT (SELECT j.xid::text::bigint FROM "leasehold".job j
                WHERE j.queue_id = l.queue_id AND j.priority = l.priority AND j.run_at IS NULL ORDER BY j.xid DESC, j.id DESC LIMIT 1) AS xid
            FROM "leasehold".job_line l
            UNION ALL
            SELECT c.at_xid::text::bigint FROM "leasehold".job_cursor c
        ) n;
    END IF;

    IF is_known THEN
        UPDATE "leasehold".epoch e SET cause = new_cause WHERE e.id = last.id;
        RETURN QUERY SELECT last.id, new_cause, last.token_base, last.job_xid_offset, last.first_event_id, true;
        RETURN;
    END IF;
    RETURN QUERY
    INSERT INTO "leasehold".epoch AS e (id, number, system_identifier, timeline, server_started_at, database, cause, start_xid, start_lsn,
        token_base, job_xid_offset, first_event_id, opened_at, opened_by, mark_xid, mark_job_id, mark_job_token, mark_admission, mark_event_id,
        marked_at)
    -- Not 0, which stands for none.
    SELECT (('x' || left(replace(gen_random_uuid()::text, '-', ''), 16))::bit(64)::bigint & 9223372036854775807) | 1::bigint,
        coalesce(last.number, 0) + 1, here.system_identifier, here.timeline, here.server_started_at, here.database, new_cause,
        start, pg_current_wal_lsn(), base, shift, first_event, now(), p_by,
        start, (SELECT s.last_value FROM "leasehold".job_id s), (SELECT s.last_value FROM "leasehold".job_token s),
        (SELECT s.last_value FROM "leasehold".admission_number s), (SELECT s.last_value FROM "leasehold".request_event_id_seq s), now()
    RETURNING e.id, e.cause, e.token_base, e.job_xid_offset, e.first_event_id, true;
END
$$;

CREATE FUNCTION leasehold.leasehold_event_adopt() RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $_$
DECLARE
    last "leasehold".request_fold;
    first_kept bigint;
    adopting bigint;
    part record;
    has_rows boolean;
BEGIN
    PERFORM pg_advisory_xact_lock(7308332201::bigint);
    PERFORM pg_advisory_xact_lock(7308332186::bigint);
    SELECT * INTO last FROM "leasehold".request_fold ORDER BY id DESC LIMIT 1;
    SELECT min(p.number), greatest(max(p.number), last.events_from >> 40, (SELECT s.last_value >> 40 FROM "leasehold".request_event_id_seq s),
        (SELECT max(e.mark_event_id) >> 40 FROM "leasehold".epoch e))
    INTO first_kept, adopting FROM "leasehold".event_partition p;
    -- The sequence may have reached a partition that is not listed yet.
    FOR part IN
        SELECT substr(c.relname::text, 15)::bigint AS number FROM pg_class c
        WHERE c.relnamespace = '"leasehold"'::regnamespace::oid AND c.relkind = 'r' AND c.relname::text ~ '^request_event_[0-9]+$'::text
            AND substr(c.relname::text, 15)::bigint > adopting
        ORDER BY number DESC
    LOOP
        EXECUTE pg_catalog.format('SELECT EXISTS (SELECT FROM "leasehold".request_event_%s)'::text, part.number) INTO has_rows;
        IF has_rows THEN
            adopting := part.number;
            EXIT;
        END IF;
    END LOOP;
    adopting := adopting + 1::bigint;
    UPDATE "leasehold".event_partition SET sealed = '3', writers = '{}';
    INSERT INTO "leasehold".event_partition (number, begun_at, sealed, writers) VALUES (adopting, clock_timestamp(), '3', '{}');
    IF EXISTS (
        SELECT FROM generate_series(first_kept, adopting) AS n (number)
        WHERE NOT EXISTS (SELECT FROM pg_inherits i
            WHERE i.inhrelid = pg_catalog.to_regclass('"leasehold".request_event_'::text || n.number::text)::oid))
    THEN
        PERFORM "leasehold".leasehold_event_tables();
    END IF;
    PERFORM setval('"leasehold".request_event_id_seq'::regclass, adopting << 40);

    WITH fresh AS (
        SELECT workspace_id, from_status, to_status, rank, line_at, bytes FROM "leasehold".request_event
        WHERE xid >= pg_snapshot_xmax(last.position) AND id >= last.events_from
        UNION ALL
        SELECT workspace_id, from_status, to_status, rank, line_at, bytes FROM "leasehold".request_event
        WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(last.position))) AND id >= last.events_from
    ), removed AS (
        DELETE FROM "leasehold".workspace_delta d
        RETURNING d.*, d.xid >= pg_snapshot_xmax(last.position) OR d.xid = ANY (ARRAY(SELECT pg_snapshot_xip(last.position))) AS is_fresh
    )
    INSERT INTO "leasehold".workspace_delta
        (workspace_id, anew, room, rank, line_at, pending, claimed, dispatched, completed, failed, open_bytes)
    SELECT workspace_id, bool_or(anew), coalesce(bool_or(room), false), min(rank), min(line_at), sum(pending)::bigint, sum(claimed)::bigint,
        sum(dispatched)::bigint, sum(completed)::bigint, sum(failed)::bigint, coalesce(sum(open_bytes), 0)::bigint
    FROM (
        SELECT workspace_id, false AS anew, from_status IN ('CLAIMED', 'DISPATCHED') AND to_status <> 'DISPATCHED' AS room, rank, line_at,
            (to_status = 'PENDING')::int - (from_status IS NOT DISTINCT FROM 'PENDING')::int AS pending,
            (to_status = 'CLAIMED')::int - (from_status IS NOT DISTINCT FROM 'CLAIMED')::int AS claimed,
            (to_status = 'DISPATCHED')::int - (from_status IS NOT DISTINCT FROM 'DISPATCHED')::int AS dispatched,
            (to_status = 'COMPLETED')::int AS completed, (to_status = 'FAILED')::int AS failed, bytes AS open_bytes
        FROM fresh
        UNION ALL
        SELECT workspace_id, anew, room, rank, line_at, pending, claimed, dispatched, completed, failed, open_bytes
        FROM removed WHERE is_fresh
    ) e
    GROUP BY workspace_id;

    INSERT INTO "leasehold".request_fold (position, folded_at, round_from, events_from)
    SELECT "leasehold".leasehold_hide_self(pg_current_snapshot()), coalesce(last.folded_at, clock_timestamp()), coalesce(last.round_from, 0::bigint),
        adopting << 40;
    DELETE FROM "leasehold".request_fold WHERE id <= last.id AND xmax = '0';
    RETURN adopting << 40;
END
$_$;

CREATE FUNCTION leasehold.leasehold_event_advance(retention interval) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET lock_timeout TO '200ms'
    AS $$
DECLARE
    last "leasehold".request_fold;
    newest "leasehold".event_partition;
    current_number bigint;
    ended bigint[];
    folded bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock(7308332201::bigint) THEN
        RETURN false;
    END IF;
    SELECT * INTO newest FROM "leasehold".event_partition ORDER BY number DESC LIMIT 1;
    IF retention IS NOT NULL AND newest.begun_at <= clock_timestamp() - greatest('1 hour'::interval, retention / 8::double precision)
        AND EXISTS (SELECT FROM pg_inherits i
            WHERE i.inhrelid = pg_catalog.to_regclass('"leasehold".request_event_'::text || (newest.number + 1::bigint)::text)::oid)
    THEN
        PERFORM setval('"leasehold".request_event_id_seq'::regclass, greatest(s.last_value, (newest.number + 1::bigint) << 40))
        FROM "leasehold".request_event_id_seq s;
    END IF;
    SELECT s.last_value >> 40 INTO current_number FROM "leasehold".request_event_id_seq s;
    IF current_number > newest.number THEN
        INSERT INTO "leasehold".event_partition (number, begun_at, writers)
        SELECT current_number, clock_timestamp(), ARRAY(
            SELECT DISTINCT l.virtualtransaction FROM pg_locks l
            WHERE l.relation = '"leasehold".request_event'::regclass::oid AND l.mode = 'RowExclusiveLock'
                AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()));
    END IF;
    IF EXISTS (SELECT FROM "leasehold".event_partition p WHERE p.sealed IS NULL) THEN
        SELECT array_agg(p.number) INTO ended FROM "leasehold".event_partition p WHERE p.sealed IS NULL
            AND NOT EXISTS (SELECT FROM pg_locks l WHERE l.virtualtransaction = ANY (p.writers));
        UPDATE "leasehold".event_partition SET sealed = pg_snapshot_xmax(pg_current_snapshot()), writers = '{}' WHERE number = ANY (ended);
    END IF;
    SELECT p.number << 40 INTO folded FROM "leasehold".event_partition p WHERE p.sealed IS NOT NULL ORDER BY p.number DESC LIMIT 1;
    SELECT * INTO last FROM "leasehold".request_fold ORDER BY id DESC LIMIT 1;
    IF folded > last.events_from THEN
        BEGIN
            PERFORM pg_advisory_xact_lock(7308332186::bigint);
        EXCEPTION WHEN lock_not_available THEN
            RETURN true;
        END;
        PERFORM "leasehold".leasehold_fold();
        SELECT * INTO last FROM "leasehold".request_fold ORDER BY id DESC LIMIT 1;
        INSERT INTO "leasehold".request_fold (position, folded_at, parked, round_from, events_from)
        VALUES (last.position, last.folded_at, last.parked, last.round_from, folded);
        DELETE FROM "leasehold".request_fold WHERE id = last.id AND xmax = '0';
        last.events_from := folded;
    END IF;
    DELETE FROM "leasehold".event_partition WHERE retention IS NOT NULL AND number < (
        SELECT max(p.number) FROM "leasehold".event_partition p
        WHERE p.sealed <= pg_snapshot_xmin(pg_current_snapshot()) AND p.number << 40 <= last.events_from
            AND p.begun_at < clock_timestamp() - greatest(retention, '1 hour'::interval));
    RETURN true;
END
$$;

CREATE FUNCTION leasehold.leasehold_event_tables() RETURNS TABLE(detach text)
    LANGUAGE plpgsql
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET lock_timeout TO '200ms'
    AS $_$
DECLARE
    first_kept bigint;
    ahead bigint;
    name text;
    has_rows boolean;
    create_table text;
    attach text;
    part record;
BEGIN
    PERFORM pg_advisory_xact_lock(7308332201::bigint);
    SELECT min(p.number) INTO first_kept FROM "leasehold".event_partition p;
    SELECT greatest((SELECT max(p.number) FROM "leasehold".event_partition p), s.last_value >> 40) + 1::bigint INTO ahead
    FROM "leasehold".request_event_id_seq s;
    FOR wanted IN first_kept .. ahead + 8::bigint LOOP
        name := '"leasehold".request_event_'::text || wanted::text;
        CONTINUE WHEN EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = pg_catalog.to_regclass(name)::oid);
        create_table := pg_catalog.format('CREATE TABLE %s (LIKE "leasehold".request_event INCLUDING ALL EXCLUDING IDENTITY,'
            ' CONSTRAINT request_event_ids CHECK (id >= %s AND id < %s))'::text, name, wanted::bigint << 40, (wanted + 1)::bigint << 40);
        attach := pg_catalog.format('ALTER TABLE "leasehold".request_event ATTACH PARTITION %1$s FOR VALUES FROM (%2$s) TO (%3$s);'
            ' ALTER TABLE %1$s DROP CONSTRAINT IF EXISTS request_event_ids'::text, name, wanted::bigint << 40, (wanted + 1)::bigint << 40);
        IF pg_catalog.to_regclass(name) IS NULL THEN
            EXECUTE create_table;
        END IF;
        CONTINUE WHEN wanted > ahead;
        BEGIN
            -- Writers do not wait for this. Autovacuum may be busy with replicated rows; after deadlock_timeout PostgreSQL interrupts it.
            PERFORM pg_catalog.set_config('lock_timeout'::text, '1900ms'::text, true);
            EXECUTE attach;
        EXCEPTION WHEN datatype_mismatch THEN
            EXECUTE pg_catalog.format('SELECT EXISTS (SELECT FROM %s)'::text, name) INTO has_rows;
            IF has_rows THEN
                RAISE;
            END IF;
            EXECUTE pg_catalog.format('DROP TABLE %s'::text, name);
            EXECUTE create_table;
            EXECUTE attach;
        END;
    END LOOP;
    PERFORM pg_catalog.set_config('lock_timeout'::text, '200ms'::text, true);
    FOR part IN
        SELECT pg_catalog.format('"leasehold".%I'::text, c.relname) AS name, i.inhrelid IS NOT NULL AS is_attached,
            coalesce(i.inhdetachpending, false) AS is_pending
        FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
        WHERE c.relnamespace = '"leasehold"'::regnamespace::oid AND c.relkind = 'r' AND c.relname::text ~ '^request_event_[0-9]+$'::text
            AND substr(c.relname::text, 15)::bigint < first_kept
        ORDER BY coalesce(i.inhdetachpending, false) DESC, substr(c.relname::text, 15)::bigint
    LOOP
        IF part.is_attached THEN
            detach := pg_catalog.format('ALTER TABLE "leasehold".request_event DETACH PARTITION %s %s'::text, part.name,
                CASE WHEN part.is_pending THEN 'FINALIZE'::text ELSE 'CONCURRENTLY'::text END);
            RETURN NEXT;
        ELSE
            BEGIN
                EXECUTE pg_catalog.format('DROP TABLE %s'::text, part.name);
            EXCEPTION WHEN lock_not_available THEN
                -- A transaction reads the table: the next call drops it.
                NULL;
            END;
        END IF;
    END LOOP;
END
$_$;

CREATE FUNCTION leasehold.leasehold_execution_inserted() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
BEGIN
    PERFORM "leasehold".leasehold_take_slots(array_agg(i.workspace_id), array_agg(i.slots), array_agg(i.lowest))
    FROM (
        SELECT workspace_id, count(*) AS slots, min(admission) AS lowest
        FROM inserted WHERE status = 'RUNNING' GROUP BY workspace_id ORDER BY workspace_id
    ) i
    HAVING count(*) > 0;
    RETURN NULL;
END
$$;

CREATE FUNCTION leasehold.leasehold_execution_updated() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
BEGIN
    PERFORM "leasehold".leasehold_take_slots(ARRAY[NEW.workspace_id], ARRAY[1]::bigint[], ARRAY[NEW.admission]);
    RETURN NULL;
END
$$;

CREATE FUNCTION leasehold.leasehold_fold() RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
DECLARE
    last "leasehold".request_fold;
    seen pg_snapshot;
    touched uuid[];
    held uuid[];
    events bigint;
    own xid8 := pg_current_xact_id_if_assigned();
    begun timestamptz;
BEGIN
    PERFORM pg_advisory_xact_lock(7308332186);
    begun := clock_timestamp();
    SELECT * INTO last FROM "leasehold".request_fold ORDER BY id DESC LIMIT 1;
    SELECT pg_current_snapshot(), array_agg(DISTINCT workspace_id), count(request_id) INTO seen, touched, events
    FROM (
        SELECT workspace_id, request_id FROM "leasehold".request_event WHERE xid >= pg_snapshot_xmax(last.position)
            AND id >= last.events_from
        UNION ALL
        SELECT workspace_id, request_id FROM "leasehold".request_event
        WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(last.position))) AND id >= last.events_from
        UNION ALL
        SELECT workspace_id, NULL FROM "leasehold".workspace_delta WHERE xid >= pg_snapshot_xmax(last.position)
        UNION ALL
        SELECT workspace_id, NULL FROM "leasehold".workspace_delta
        WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(last.position)))
    ) e;
    IF touched IS NULL THEN
        RETURN 0;
    END IF;
    IF pg_visible_in_snapshot(pg_current_xact_id_if_assigned(), seen) THEN
        seen := "leasehold".leasehold_hide_self(seen);
    END IF;

    SELECT array_agg(w.id) INTO held FROM unnest(touched) AS w (id) CROSS JOIN LATERAL (
        SELECT 1 FROM "leasehold".workspace_turn WHERE workspace_id = w.id ORDER BY turn DESC LIMIT 1 FOR UPDATE SKIP LOCKED
    ) t;

    WITH fresh AS (
        SELECT workspace_id, from_status, to_status, rank, line_at, bytes
        FROM "leasehold".request_event
        WHERE xid >= pg_snapshot_xmax(last.position) AND id >= last.events_from AND pg_visible_in_snapshot(xid, seen)
        UNION ALL
        SELECT workspace_id, from_status, to_status, rank, line_at, bytes
        FROM "leasehold".request_event
        WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(last.position))) AND id >= last.events_from AND pg_visible_in_snapshot(xid, seen)
    ), parked AS MATERIALIZED (
        SELECT d.* FROM (
            SELECT ctid AS tid, * FROM "leasehold".workspace_delta WHERE xid >= pg_snapshot_xmax(last.position)
            UNION ALL
            SELECT ctid AS tid, * FROM "leasehold".workspace_delta WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(last.position)))
        ) d
        WHERE pg_visible_in_snapshot(d.xid, seen) OR d.xid = own
    ), deleted AS (
        DELETE FROM "leasehold".workspace_delta WHERE ctid = ANY (ARRAY(SELECT tid FROM parked)) AND xmax = '0'
    ), change AS MATERIALIZED (
        SELECT workspace_id, bool_or(anew) AS anew, bool_or(room) AS room, min(rank) AS rank, min(line_at) AS line_at,
            sum(pending)::bigint AS pending, sum(claimed)::bigint AS claimed, sum(dispatched)::bigint AS dispatched,
            sum(completed)::bigint AS completed, sum(failed)::bigint AS failed, coalesce(sum(open_bytes), 0)::bigint AS open_bytes
        FROM (
            SELECT workspace_id, false AS anew,
                from_status IN ('CLAIMED', 'DISPATCHED') AND to_status <> 'DISPATCHED' AS room, rank, line_at,
                (to_status = 'PENDING')::int - (from_status IS NOT DISTINCT FROM 'PENDING')::int AS pending,
                (to_status = 'CLAIMED')::int - (from_status IS NOT DISTINCT FROM 'CLAIMED')::int AS claimed,
                (to_status = 'DISPATCHED')::int - (from_status IS NOT DISTINCT FROM 'DISPATCHED')::int AS dispatched,
                (to_status = 'COMPLETED')::int AS completed,
                (to_status = 'FAILED')::int AS failed,
                bytes AS open_bytes
            FROM fresh
            UNION ALL
            SELECT workspace_id, anew, room, CASE WHEN anew THEN -32768 ELSE rank END,
                CASE WHEN anew THEN '-infinity' ELSE line_at END, pending, claimed, dispatched, completed, failed,
                open_bytes
            FROM parked
        ) e
        GROUP BY workspace_id
    ), postponed AS (
        INSERT INTO "leasehold".workspace_delta
            (workspace_id, anew, room, rank, line_at, pending, claimed, dispatched, completed, failed, open_bytes)
        SELECT c.workspace_id, c.anew, coalesce(c.room, false), c.rank, c.line_at, c.pending, c.claimed, c.dispatched,
            c.completed, c.failed, c.open_bytes
        FROM change c LEFT JOIN unnest(held) AS h (id) ON h.id = c.workspace_id
        -- EXISTS, for the few locked ones: a join might read every workspace's row.
        WHERE CASE WHEN h.id IS NULL
            THEN EXISTS (SELECT 1 FROM "leasehold".workspace_turn t WHERE t.workspace_id = c.workspace_id) END
    ), next AS (
        SELECT t.tid, c.*,
            t.turn, t.deleted, t.paused, t.concurrency_limit, t.ready AS was_ready,
            t.has_work OR c.line_at IS NOT NULL AS has_work,
            t.has_room OR coalesce(c.room, false) OR c.anew AS has_room
        FROM change c JOIN unnest(held) AS h (id) ON h.id = c.workspace_id
        CROSS JOIN LATERAL (
            SELECT ctid AS tid, * FROM "leasehold".workspace_turn WHERE workspace_id = c.workspace_id ORDER BY turn DESC LIMIT 1
        ) t
    ), placed AS (
        SELECT *, CASE WHEN joins AND turn < last.round_from
            THEN last.round_from - row_number() OVER (
                PARTITION BY joins AND turn < last.round_from ORDER BY turn DESC, workspace_id DESC)
            ELSE turn END AS new_turn
        FROM (
            SELECT *, (anew OR NOT was_ready) AND has_work
                AND (deleted OR (has_room AND NOT paused AND concurrency_limit > 0)) AS joins
            FROM next
        ) n
    ), turned AS (
        UPDATE "leasehold".workspace_turn t
        SET pending = t.pending + p.pending, claimed = t.claimed + p.claimed, dispatched = t.dispatched + p.dispatched,
            completed = t.completed + p.completed, failed = t.failed + p.failed, open_bytes = t.open_bytes + p.open_bytes,
            has_work = p.has_work, has_room = p.has_room, ready = p.was_ready OR p.joins, turn = p.new_turn,
            line_rank = least(t.line_rank, p.rank),
            line_at = CASE WHEN (p.rank, p.line_at) < (t.line_rank, t.line_at) THEN p.line_at ELSE t.line_at END,
            line_id = CASE WHEN (p.rank, p.line_at) <= (t.line_rank, t.line_at)
                THEN '00000000-0000-0000-0000-000000000000' ELSE t.line_id END,
            written_by = pg_current_xact_id()
        FROM placed p
        WHERE t.ctid = p.tid
        RETURNING CASE WHEN p.joins THEN t.turn END AS joined_at
    )
    INSERT INTO "leasehold".request_fold (position, folded_at, events_from, parked, round_from)
    SELECT seen, begun, last.events_from, ARRAY(SELECT unnest(touched) EXCEPT SELECT unnest(held)), least(
        coalesce((SELECT turn FROM "leasehold".workspace_turn WHERE ready AND turn >= last.round_from ORDER BY turn LIMIT 1), 9e18),
        coalesce((SELECT min(joined_at) FROM turned), 9e18),
        (SELECT last_value FROM "leasehold".admission_number))::bigint;
    DELETE FROM "leasehold".request_fold WHERE id = last.id AND xmax = '0';
    RETURN events;
END
$$;

CREATE FUNCTION leasehold.leasehold_hide_self(seen pg_snapshot) RETURNS pg_snapshot
    LANGUAGE plpgsql
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
DECLARE
    self xid8 := pg_current_xact_id_if_assigned();
BEGIN
    IF self IS NULL OR NOT pg_visible_in_snapshot(self, seen) THEN
        RETURN seen;
    END IF;
    RETURN pg_catalog.concat(pg_snapshot_xmin(seen)::text, ':'::text, pg_snapshot_xmax(seen)::text, ':'::text, (
        SELECT string_agg(o.xid::text, ','::text ORDER BY o.xid)
        FROM (SELECT x.xid FROM pg_snapshot_xip(seen) AS x (xid) UNION ALL SELECT self) o
    ))::pg_snapshot;
END
$$;

CREATE FUNCTION leasehold.leasehold_is_readable(document jsonb) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $_$
DECLARE
    brackets text := pg_catalog.regexp_replace(
        pg_catalog.regexp_replace(document::text, '"([^"\\]|\\.)*"', '', 'g'), '[^][{}]', '', 'g');
BEGIN
    IF pg_catalog.jsonb_path_exists(document, '$.** ? (@.type() == "number" && (@ > 1.7e308 || @ < -1.7e308))') THEN
        RETURN false;
    END IF;
    FOR level IN 1..64 LOOP
        EXIT WHEN brackets = '';
        brackets := pg_catalog.replace(pg_catalog.replace(brackets, '[]', '.'), '{}', '.');
        brackets := pg_catalog.replace(brackets, '.', '');
    END LOOP;
    RETURN brackets = '';
END
$_$;

CREATE FUNCTION leasehold.leasehold_job_cancel(p_now timestamp with time zone, p_id bigint) RETURNS text
    LANGUAGE plpgsql
    AS $$
DECLARE
    target "leasehold".job;
    waited "leasehold".job_waiting;
    moment timestamptz;
BEGIN
    SELECT j.* INTO target FROM "leasehold".job j WHERE j.id = p_id;
    IF target.id IS NULL THEN
        RETURN 'not_found';
    END IF;
    IF target.node IS NOT NULL AND NOT EXISTS (SELECT FROM "leasehold".job_end e WHERE e.id = p_id) THEN
        RETURN 'of_graph';
    END IF;
    -- Blocks claims of the queue, so the job cannot change its status between the following checks.
    PERFORM pg_advisory_xact_lock(730834, target.queue_id);
    moment := coalesce(p_now, clock_timestamp());
    IF EXISTS (SELECT FROM "leasehold".job_lease l WHERE l.queue_id = target.queue_id AND p_id = ANY (l.ids)) THEN
        RETURN 'running';
    END IF;
    PERFORM 1 FROM "leasehold".job j WHERE j.id = p_id FOR NO KEY UPDATE NOWAIT;
    PERFORM 1 FROM "leasehold".job_waiting w WHERE w.job_id = p_id FOR UPDATE NOWAIT;
    PERFORM 1 FROM "leasehold".job_key k WHERE k.job_id = p_id FOR UPDATE NOWAIT;
    PERFORM 1 FROM "leasehold".job_note n WHERE n.job_id = p_id FOR UPDATE NOWAIT;
    DELETE FROM "leasehold".job_waiting w WHERE w.job_id = p_id RETURNING w.* INTO waited;
    IF waited.job_id IS NULL THEN
        IF EXISTS (SELECT FROM "leasehold".job_end e WHERE e.id = p_id) THEN
            RETURN 'finished';
        END IF;
        -- Takes the job out of its line: the only update of a job's row.
        UPDATE "leasehold".job j SET run_at = j.created_at WHERE j.id = p_id AND j.run_at IS NULL;
        IF NOT FOUND THEN
            RETURN 'not_found';
        END IF;
    END IF;
    INSERT INTO "leasehold".job_end (id, finished_at, token, attempts, status, last_error)
    VALUES (p_id, moment, coalesce(waited.token, 0), coalesce(waited.attempts, 0), 'failed', 'cancelled');
    DELETE FROM "leasehold".job_key k WHERE k.job_id = p_id AND k.holds_until IS NULL;
    DELETE FROM "leasehold".job_note n WHERE n.job_id = p_id;
    RETURN 'cancelled';
END
$$;

CREATE FUNCTION leasehold.leasehold_job_claim(p_now timestamp with time zone, p_queue integer, p_name text, p_worker text, p_max integer, p_lease_us bigint, p_expired_from timestamp with time zone, p_expired_max integer, p_xid_offset bigint) RETURNS TABLE(id bigint, token bigint, attempt integer, priority smallint, created_at timestamp with time zone, kind text, payload json, max_attempts integer, backoff_base_us bigint, backoff_max_us bigint, backoff_factor double precision, backoff_jitter double precision, timeout_us bigint, trace_context text, progress json, last_error text, lease_us bigint, lease_expires_at timestamp with time zone, at_limit boolean, next_due_us bigint, expired integer)
    LANGUAGE plpgsql
    AS $_$
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
BEGIN
    -- The shared lock blocks changes of the total limit.
    PERFORM pg_advisory_xact_lock_shared(730833, 0), pg_advisory_xact_lock(730834, p_queue);
    moment := coalesce(p_now, clock_timestamp());
    SELECT q.*, t.max_running AS total,
        p_expired_max > 0 AND EXISTS (
            SELECT FROM "leasehold".job_lease l WHERE l.expires_at > p_expired_from AND l.expires_at <= moment) AS some_expired,
        (SELECT w.run_at FROM "leasehold".job_waiting w
            WHERE w.queue_id = p_queue AND NOT w.ready ORDER BY w.run_at, w.job_id LIMIT 1) AS next_due
    INTO about FROM "leasehold".queue q CROSS JOIN "leasehold".job_limit t WHERE q.id = p_queue AND q.name = p_name AND t.one;
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
        SELECT count(*) INTO freed FROM "leasehold".leasehold_job_expire(moment, p_expired_from, p_expired_max);
        IF freed > 0 THEN
            PERFORM "leasehold".leasehold_job_notify();
        END IF;
    END IF;
    IF about.max_running IS NOT NULL THEN
        SELECT about.max_running - coalesce(sum(l.entries), 0) INTO room FROM "leasehold".job_lease l WHERE l.queue_id = p_queue;
    END IF;
    IF about.total IS NOT NULL THEN
        SELECT least(room, about.total - coalesce(sum(l.entries), 0)) INTO room FROM "leasehold".job_lease l;
    END IF;
    wanted := greatest(least(p_max, room), 0);

    IF next_due <= moment THEN
        UPDATE "leasehold".job_waiting w SET ready = true
        FROM (
            SELECT d.job_id FROM "leasehold".job_waiting d
            WHERE d.queue_id = p_queue AND NOT d.ready AND d.run_at <= moment
            ORDER BY d.run_at, d.job_id LIMIT greatest(p_max, 1000) FOR UPDATE SKIP LOCKED
        ) d
        WHERE w.job_id = d.job_id;
        SELECT w.run_at INTO next_due FROM "leasehold".job_waiting w
        WHERE w.queue_id = p_queue AND NOT w.ready ORDER BY w.run_at, w.job_id LIMIT 1;
    END IF;

    -- Only lines that may have jobs.
    <<lines>>
    FOR line IN
        SELECT n.priority, coalesce(c.version, 0) AS version, coalesce(c.at_xid, '0') AS at_xid, coalesce(c.at_id, 0) AS at_id,
            coalesce(c.late_xid, '{}') AS late_xid, coalesce(c.late_id, '{}') AS late_id, w.some IS NOT NULL AS some_waiting
        FROM "leasehold".job_line n
        LEFT JOIN LATERAL (
            SELECT c.* FROM "leasehold".job_cursor c WHERE c.queue_id = p_queue AND c.priority = n.priority
            ORDER BY c.version DESC LIMIT 1
        ) c ON true
        LEFT JOIN LATERAL (
            SELECT 1 AS some FROM "leasehold".job_waiting w WHERE w.queue_id = p_queue AND w.priority = n.priority AND w.ready LIMIT 1
        ) w ON true
        LEFT JOIN LATERAL (
            SELECT 1 AS some FROM "leasehold".job j
            WHERE j.queue_id = p_queue AND j.priority = n.priority AND j.run_at IS NULL
                AND (j.xid, j.id) > (coalesce(c.at_xid, '0'), coalesce(c.at_id, 0))
            ORDER BY j.xid, j.id LIMIT 1
        ) f ON true
        WHERE n.queue_id = p_queue AND wanted > 0
            AND (w.some IS NOT NULL OR cardinality(c.late_xid) > 0 OR f.some IS NOT NULL)
        ORDER BY n.priority DESC
    LOOP
        EXIT WHEN wanted <= 0;
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
                    FROM "leasehold".job j
                    WHERE j.queue_id = p_queue AND j.priority = line.priority AND j.run_at IS NULL
                        AND (j.xid, j.id) > (line.at_xid, line.at_id)
                    ORDER BY j.xid, j.id LIMIT take
                ) m;
            ELSE
                -- Fresh jobs keep the order of their line even if their times do not: they sort by the running maximum.
                WITH waiting AS (
                    SELECT w.job_id, w.created_at, w.attempts FROM "leasehold".job_waiting w
                    WHERE w.queue_id = p_queue AND w.priority = line.priority AND w.ready
                    ORDER BY w.created_at, w.job_id LIMIT take FOR UPDATE SKIP LOCKED
                ), late AS (
                    SELECT j.id, j.xid, j.created_at, j.spot, j.of_graph, j.bytes
                    FROM unnest(line.late_xid, line.late_id) AS l (xid, id)
                    CROSS JOIN LATERAL (
                        SELECT j.id, j.xid, j.created_at, j.ctid AS spot, j.node IS NOT NULL AS of_graph,
                            CASE WHEN j.node IS NOT NULL THEN coalesce(substring(j.payload ->> 'bytes'::text FROM '^[0-9]{1,9}$'::text)::integer, 0)
                                WHEN pg_column_compression(j.payload) IS NULL THEN pg_column_size(j.payload) ELSE 262144 END AS bytes
                        FROM "leasehold".job j
                        WHERE j.queue_id = p_queue AND j.priority = line.priority AND j.run_at IS NULL
                            AND (j.xid, j.id) > (l.xid, l.id) AND j.xid <= l.xid
                        ORDER BY j.xid, j.id LIMIT take
                    ) j
                ), main AS (
                    SELECT j.id, j.xid, j.created_at, j.ctid AS spot, j.node IS NOT NULL AS of_graph,
                        CASE WHEN j.node IS NOT NULL THEN coalesce(substring(j.payload ->> 'bytes'::text FROM '^[0-9]{1,9}$'::text)::integer, 0)
                            WHEN pg_column_compression(j.payload) IS NULL THEN pg_column_size(j.payload) ELSE 262144 END AS bytes
                    FROM "leasehold".job j
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
                        FROM "leasehold".job j WHERE j.id = w.job_id LIMIT 1
                    ) j ON true
                    LEFT JOIN LATERAL (
                        SELECT coalesce(octet_length(o.last_error), 0)
                            + CASE WHEN pg_column_compression(o.progress) IS NULL THEN coalesce(pg_column_size(o.progress), 0)
                                ELSE 262144 END AS bytes
                        FROM "leasehold".job_note o WHERE o.job_id = w.job_id LIMIT 1
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
                DELETE FROM "leasehold".job_waiting w WHERE w.job_id = ANY (pick.orphans);
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
                    FROM "leasehold".job_note o WHERE o.job_id = j.id LIMIT 1), 0)
                INTO bytes FROM "leasehold".job j WHERE j.ctid = spot;
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
                    DELETE FROM "leasehold".job_cursor c
                    WHERE c.queue_id = p_queue AND c.priority = line.priority AND c.version = line.version AND c.xmax = '0'
                )
                INSERT INTO "leasehold".job_cursor (queue_id, priority, version, at_xid, at_id, late_xid, late_id)
                VALUES (p_queue, line.priority, line.version + 1, to_xid,
                    coalesce(pick.main_id[cardinality(pick.main_id)], line.at_id), late_xids, late_ids);
            END IF;
        END IF;
        IF pick.waiting IS NOT NULL THEN
            DELETE FROM "leasehold".job_waiting w WHERE w.job_id = ANY (pick.waiting);
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

    RETURN QUERY
    WITH page AS (
        INSERT INTO "leasehold".job_lease AS l (token, claimed_at, expires_at, queue_id, entries, nodes, worker, ids, ends, attempts)
        SELECT nextval('"leasehold".job_token'::regclass), moment, ends_at, p_queue, p.entries, some_nodes, p_worker,
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
        CASE WHEN cardinality(picked) < p_max THEN (extract(epoch FROM next_due - moment) * 1000000::numeric)::bigint END, freed
    UNION ALL
    SELECT j.id, n.token, e.attempt, j.priority, j.created_at, j.kind, j.payload, j.max_attempts, j.backoff_base_us,
        j.backoff_max_us, j.backoff_factor, j.backoff_jitter, j.timeout_us, j.trace_context, o.progress, o.last_error,
        NULL::bigint, NULL::timestamptz, NULL::boolean, NULL::bigint, NULL::integer
    FROM numbered n
    CROSS JOIN LATERAL unnest(spots[n.number * 64 + 1:n.number * 64 + 64], tries[n.number * 64 + 1:n.number * 64 + 64])
        AS e (spot, attempt)
    JOIN "leasehold".job j ON j.ctid = e.spot
    LEFT JOIN LATERAL (SELECT o.progress, o.last_error FROM "leasehold".job_note o WHERE o.job_id = j.id LIMIT 1) o ON true;
END
$_$;

CREATE FUNCTION leasehold.leasehold_job_enqueue(queue text, kind text, payload json DEFAULT 'null'::json, priority integer DEFAULT 0, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, dedup_key text DEFAULT NULL::text, dedup_window interval DEFAULT NULL::interval, max_attempts integer DEFAULT NULL::integer, timeout interval DEFAULT NULL::interval, trace_context text DEFAULT NULL::text, options jsonb DEFAULT NULL::jsonb) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := clock_timestamp();
    in_queue integer;
    at timestamptz := CASE WHEN leasehold_job_enqueue.run_at > moment THEN leasehold_job_enqueue.run_at END;
    new_id bigint := nextval('"leasehold".job_id'::regclass);
    holder bigint;
    own_xid xid8 := pg_current_xact_id();
    xid_offset bigint;
    epoch_of timestamptz;
BEGIN
    IF leasehold_job_enqueue.options IS NOT NULL THEN
        PERFORM "leasehold".leasehold_check_options('leasehold_job_enqueue'::text, leasehold_job_enqueue.options, '{}'::text[]);
    END IF;
    IF octet_length(leasehold_job_enqueue.payload::text) > 262144 THEN
        RAISE EXCEPTION 'payload must be at most 262144 bytes of JSON, got %',
            octet_length(leasehold_job_enqueue.payload::text) USING ERRCODE = 'program_limit_exceeded';
    END IF;
    IF leasehold_job_enqueue.queue ~ '[[:cntrl:]]' OR leasehold_job_enqueue.kind ~ '[[:cntrl:]]' THEN
        RAISE EXCEPTION 'queue and kind must not contain control characters'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF starts_with(leasehold_job_enqueue.queue, 'leasehold:'::text) THEN
        RAISE EXCEPTION 'queue must not start with "leasehold:", which is reserved for Leasehold''s own queues'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF leasehold_job_enqueue.max_attempts <= 0 OR leasehold_job_enqueue.max_attempts > 32767 THEN
        RAISE EXCEPTION 'max_attempts must be between 1 and 32767, not %', leasehold_job_enqueue.max_attempts
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF leasehold_job_enqueue.timeout <= interval '0' THEN
        RAISE EXCEPTION 'timeout must be greater than zero' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT e.job_xid_offset, e.server_started_at INTO xid_offset, epoch_of
    FROM "leasehold".epoch e ORDER BY e.number DESC, e.opened_at DESC, e.id DESC LIMIT 1;
    IF epoch_of IS DISTINCT FROM pg_postmaster_start_time() THEN
        PERFORM "leasehold".leasehold_check_epoch();
    END IF;
    SELECT q.id INTO in_queue FROM "leasehold".queue q WHERE q.name = leasehold_job_enqueue.queue;
    IF NOT FOUND THEN
        INSERT INTO "leasehold".queue (name) VALUES (leasehold_job_enqueue.queue) ON CONFLICT (name) DO NOTHING;
        SELECT q.id INTO in_queue FROM "leasehold".queue q WHERE q.name = leasehold_job_enqueue.queue;
    END IF;
    IF NOT EXISTS (SELECT FROM "leasehold".job_line l WHERE l.queue_id = in_queue AND l.priority = leasehold_job_enqueue.priority) THEN
        INSERT INTO "leasehold".job_line (queue_id, priority, queue)
        VALUES (in_queue, leasehold_job_enqueue.priority, leasehold_job_enqueue.queue) ON CONFLICT DO NOTHING;
    END IF;
    IF leasehold_job_enqueue.dedup_key IS NOT NULL THEN
        DELETE FROM "leasehold".job_key k
        WHERE k.queue_id = in_queue AND k.key = leasehold_job_enqueue.dedup_key AND k.holds_until <= moment;
        INSERT INTO "leasehold".job_key AS k (queue_id, key, job_id, holds_until)
        VALUES (in_queue, leasehold_job_enqueue.dedup_key, new_id, moment + leasehold_job_enqueue.dedup_window)
        ON CONFLICT (queue_id, key) DO NOTHING;
        IF NOT FOUND THEN
            SELECT k.job_id INTO holder FROM "leasehold".job_key k
            WHERE k.queue_id = in_queue AND k.key = leasehold_job_enqueue.dedup_key;
            IF holder IS NULL THEN
                RAISE EXCEPTION 'deduplication key "%" was released concurrently; retry the transaction', leasehold_job_enqueue.dedup_key
                    USING ERRCODE = 'serialization_failure';
            END IF;
            RETURN holder;
        END IF;
    END IF;
    IF xid_offset > 0::bigint THEN
        own_xid := (own_xid::text::bigint + xid_offset)::text::xid8;
    END IF;
    INSERT INTO "leasehold".job (id, xid, created_at, run_at, timeout_us, queue_id, max_attempts, priority, kind, payload, trace_context)
    VALUES (new_id, own_xid, moment, at, (extract(epoch FROM leasehold_job_enqueue.timeout) * 1000000::numeric)::bigint, in_queue,
        leasehold_job_enqueue.max_attempts, leasehold_job_enqueue.priority, leasehold_job_enqueue.kind,
        coalesce(leasehold_job_enqueue.payload, 'null'), left(leasehold_job_enqueue.trace_context, 1024));
    IF at IS NOT NULL THEN
        INSERT INTO "leasehold".job_waiting (job_id, created_at, run_at, queue_id, priority, ready)
        VALUES (new_id, moment, at, in_queue, leasehold_job_enqueue.priority, false);
    END IF;
    PERFORM "leasehold".leasehold_job_notify();
    RETURN new_id;
END
$$;

CREATE FUNCTION leasehold.leasehold_job_expire(p_now timestamp with time zone, p_from timestamp with time zone, p_limit integer) RETURNS TABLE(id bigint, token bigint, queue text, worker text, status text)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := coalesce(p_now, clock_timestamp());
BEGIN
    RETURN QUERY
    WITH page AS MATERIALIZED (
        SELECT l.* FROM "leasehold".job_lease l
        WHERE l.expires_at > p_from AND l.expires_at <= moment
        ORDER BY l.expires_at LIMIT p_limit FOR UPDATE SKIP LOCKED
    ), held AS MATERIALIZED (
        SELECT p.token, p.queue_id, p.worker, e.id, e.ends, e.attempt, e.ordinal,
            e.ends <= moment AND row_number() OVER (ORDER BY e.ends, e.id) <= p_limit AS over
        FROM page p CROSS JOIN unnest(p.ids, p.ends, p.attempts) WITH ORDINALITY AS e (id, ends, attempt, ordinal)
    ), note AS MATERIALIZED (
        SELECT n.job_id FROM "leasehold".job_note n WHERE n.job_id = ANY (ARRAY(SELECT h.id FROM held h WHERE h.over)) FOR UPDATE SKIP LOCKED
    ), key AS MATERIALIZED (
        SELECT k.job_id FROM "leasehold".job_key k WHERE k.job_id = ANY (ARRAY(SELECT h.id FROM held h WHERE h.over)) FOR UPDATE SKIP LOCKED
    ), busy AS MATERIALIZED (
        SELECT n.job_id AS id FROM "leasehold".job_note n
        WHERE n.job_id = ANY (ARRAY(SELECT h.id FROM held h WHERE h.over)) AND NOT EXISTS (SELECT FROM note o WHERE o.job_id = n.job_id)
        UNION ALL
        SELECT k.job_id FROM "leasehold".job_key k
        WHERE k.job_id = ANY (ARRAY(SELECT h.id FROM held h WHERE h.over)) AND NOT EXISTS (SELECT FROM key o WHERE o.job_id = k.job_id)
    ), entry AS MATERIALIZED (
        SELECT h.token, h.queue_id, h.worker, h.id, h.ends, h.attempt, h.ordinal,
            h.over AND NOT EXISTS (SELECT FROM busy b WHERE b.id = h.id) AS over
        FROM held h
    ), rest AS (
        SELECT e.token, min(e.ends) AS expires_at, count(*)::integer AS entries, array_agg(e.id ORDER BY e.ordinal) AS ids,
            array_agg(e.ends ORDER BY e.ordinal) AS ends, array_agg(e.attempt ORDER BY e.ordinal) AS attempts
        FROM entry e WHERE NOT e.over GROUP BY e.token
    ), kept AS (
        UPDATE "leasehold".job_lease l
        SET expires_at = r.expires_at, entries = r.entries, ids = r.ids, ends = r.ends, attempts = r.attempts
        FROM rest r WHERE l.token = r.token
    ), gone AS (
        DELETE FROM "leasehold".job_lease l USING page p
        WHERE l.token = p.token AND NOT EXISTS (SELECT FROM rest r WHERE r.token = p.token)
    ), expired AS MATERIALIZED (
        SELECT e.token, e.queue_id, e.worker, e.id, e.attempt, j.priority, j.created_at, j.execution_id, j.node, q.name,
            left('the lease of ' || e.worker || ' expired', 4000) AS error,
            e.attempt >= coalesce(j.max_attempts, q.max_attempts) AS exhausted
        FROM entry e JOIN "leasehold".job j ON j.id = e.id JOIN "leasehold".queue q ON q.id = e.queue_id
        WHERE e.over
    ), failed AS (
        INSERT INTO "leasehold".job_end (id, finished_at, token, attempts, status, last_error)
        SELECT x.id, moment, x.token, x.attempt, 'failed', x.error FROM expired x WHERE x.exhausted
    ), spent AS (
        INSERT INTO "leasehold".node_spent (execution_id, node, attempts, error)
        SELECT x.execution_id, x.node, x.attempt, x.error FROM expired x WHERE x.exhausted AND x.execution_id IS NOT NULL
        ON CONFLICT DO NOTHING
    ), unkeyed AS (
        DELETE FROM "leasehold".job_key k USING expired x WHERE x.exhausted AND k.job_id = x.id AND k.holds_until IS NULL
    ), unnoted AS (
        DELETE FROM "leasehold".job_note n USING expired x WHERE x.exhausted AND n.job_id = x.id
    ), requeued AS (
        INSERT INTO "leasehold".job_waiting (job_id, created_at, run_at, token, queue_id, attempts, priority, ready)
        SELECT x.id, x.created_at, moment, x.token, x.queue_id, x.attempt, x.priority, true
        FROM expired x WHERE NOT x.exhausted
    ), noted AS (
        INSERT INTO "leasehold".job_note (job_id, last_error) SELECT x.id, x.error FROM expired x WHERE NOT x.exhausted
        ON CONFLICT (job_id) DO UPDATE SET last_error = excluded.last_error
    )
    SELECT x.id, x.token, x.name, x.worker, CASE WHEN x.exhausted THEN 'failed' ELSE 'queued' END FROM expired x;
END
$$;

CREATE FUNCTION leasehold.leasehold_job_finish(p_now timestamp with time zone, p_worker text, p_pages bigint[], p_first integer[], p_ids bigint[], p_plain boolean, p_becomes text[], p_results json[], p_errors text[], p_waits_us bigint[], p_uncounted boolean[], p_nodes boolean) RETURNS TABLE(id bigint, token bigint, becomes text, run_at timestamp with time zone)
    LANGUAGE plpgsql
    AS $$
#variable_conflict use_column
DECLARE
    page "leasehold".job_lease;
    settings "leasehold".queue;
    moment timestamptz;
    low integer;
    high integer;
    given bigint[];
    skipped bigint[];
    done bigint[] := '{}';
    wakes boolean := false;
    held record;
BEGIN
    IF NOT p_nodes THEN
        PERFORM set_config('lock_timeout', '200ms', true);
    END IF;
    FOR i IN 1..cardinality(p_pages) LOOP
        SELECT l.* INTO page FROM "leasehold".job_lease l WHERE l.token = p_pages[i] AND l.worker = p_worker FOR UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        moment := coalesce(p_now, clock_timestamp());
        low := p_first[i];
        high := coalesce(p_first[i + 1] - 1, cardinality(p_ids));
        given := p_ids[low:high];
        IF settings.id IS DISTINCT FROM page.queue_id THEN
            SELECT q.* INTO settings FROM "leasehold".queue q WHERE q.id = page.queue_id;
        END IF;
        wakes := wakes OR settings.max_running IS NOT NULL;
        skipped := NULL;
        IF page.nodes AND NOT p_nodes THEN
            SELECT array_agg(j.id) INTO skipped
            FROM unnest(given) WITH ORDINALITY AS g (id, ordinal) JOIN "leasehold".job j ON j.id = g.id
            WHERE j.node IS NOT NULL
                AND (p_plain OR NOT (p_becomes[low - 1 + g.ordinal] = 'queued' AND p_uncounted[low - 1 + g.ordinal]));
            RETURN QUERY SELECT e.id, page.token, 'of_graph', NULL::timestamptz
            FROM unnest(page.ids, page.ends) AS e (id, ends) WHERE e.id = ANY (skipped) AND e.ends > moment;
        END IF;
        IF p_plain AND page.expires_at > moment AND skipped IS NULL AND (page.ids = given OR page.ids <@ given) THEN
            -- The usual case: all remaining entries of the page.
            DELETE FROM "leasehold".job_lease l WHERE l.token = page.token;
            IF settings.keep_completed THEN
                INSERT INTO "leasehold".job_end (id, finished_at, token, attempts, status, last_error)
                SELECT e.id, moment, page.token, e.attempt, 'completed',
                    (SELECT n.last_error FROM "leasehold".job_note n WHERE n.job_id = e.id)
                FROM unnest(page.ids, page.attempts) AS e (id, attempt);
            ELSE
                DELETE FROM "leasehold".job j WHERE j.id = ANY (page.ids);
            END IF;
            done := done || page.ids;
            RETURN QUERY SELECT e.id, page.token, NULL::text, NULL::timestamptz FROM unnest(page.ids) AS e (id);
            CONTINUE;
        END IF;

        FOR held IN
            WITH entry AS MATERIALIZED (
                SELECT e.id, e.ends, e.attempt, e.ordinal, g.ordinal AS given_ordinal,
                    g.ordinal IS NOT NULL AND e.ends > moment AND (skipped IS NULL OR e.id <> ALL (skipped)) AS owned
                FROM unnest(page.ids, page.ends, page.attempts) WITH ORDINALITY AS e (id, ends, attempt, ordinal)
                LEFT JOIN unnest(given) WITH ORDINALITY AS g (id, ordinal) ON g.id = e.id
            ), rest AS (
                SELECT min(e.ends) AS expires_at, count(*)::integer AS entries, array_agg(e.id ORDER BY e.ordinal) AS ids,
                    array_agg(e.ends ORDER BY e.ordinal) AS ends, array_agg(e.attempt ORDER BY e.ordinal) AS attempts
                FROM entry e WHERE NOT e.owned
            ), kept AS (
                UPDATE "leasehold".job_lease l
                SET expires_at = r.expires_at, entries = r.entries, ids = r.ids, ends = r.ends, attempts = r.attempts
                FROM rest r WHERE l.token = page.token AND r.entries > 0 AND r.entries < page.entries
            ), gone AS (
                DELETE FROM "leasehold".job_lease l USING rest r WHERE l.token = page.token AND r.entries = 0
            ), owned AS MATERIALIZED (
                SELECT e.id, e.attempt, CASE WHEN p_plain THEN 'completed' ELSE p_becomes[low - 1 + e.given_ordinal] END AS becomes,
                    p_results[low - 1 + e.given_ordinal] AS result, p_errors[low - 1 + e.given_ordinal] AS error,
                    moment + p_waits_us[low - 1 + e.given_ordinal]::double precision * interval '1 microsecond' AS run_at,
                    p_uncounted[low - 1 + e.given_ordinal] AS uncounted
                FROM entry e WHERE e.owned
            ), ended AS (
                INSERT INTO "leasehold".job_end (id, finished_at, token, attempts, status, result, last_error)
                SELECT o.id, moment, page.token, o.attempt, o.becomes, o.result,
                    coalesce(o.error, (SELECT n.last_error FROM "leasehold".job_note n WHERE n.job_id = o.id))
                FROM owned o WHERE o.becomes = 'failed' OR (o.becomes = 'completed' AND settings.keep_completed)
            ), discarded AS (
                DELETE FROM "leasehold".job j
                WHERE NOT settings.keep_completed AND j.id = ANY (ARRAY(SELECT o.id FROM owned o WHERE o.becomes = 'completed'))
            ), requeued AS (
                INSERT INTO "leasehold".job_waiting (job_id, created_at, run_at, token, queue_id, attempts, priority, ready)
                SELECT o.id, j.created_at, o.run_at, page.token, page.queue_id, o.attempt - o.uncounted::integer, j.priority,
                    o.run_at <= moment
                FROM owned o CROSS JOIN LATERAL (SELECT j.* FROM "leasehold".job j WHERE j.id = o.id LIMIT 1) j
                WHERE o.becomes = 'queued'
            ), noted AS (
                INSERT INTO "leasehold".job_note (job_id, last_error)
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
        DELETE FROM "leasehold".job_key k WHERE k.job_id = ANY (done) AND k.holds_until IS NULL;
        DELETE FROM "leasehold".job_note n WHERE n.job_id = ANY (done);
    END IF;
    IF wakes OR (SELECT l.max_running IS NOT NULL FROM "leasehold".job_limit l) THEN
        PERFORM "leasehold".leasehold_job_notify();
    END IF;
END
$$;

CREATE FUNCTION leasehold.leasehold_job_notify() RETURNS boolean
    LANGUAGE sql
    AS $$
    SELECT CASE
        WHEN pg_catalog.pg_try_advisory_xact_lock_shared(7308332189)
            OR pg_catalog.current_setting('leasehold.notify', true) = 'off' THEN false
        ELSE pg_catalog.pg_notify('leasehold_job', '') IS NOT NULL
    END
$$;

CREATE FUNCTION leasehold.leasehold_job_progress(p_now timestamp with time zone, p_worker text, p_token bigint, p_id bigint, p_progress json) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
    page "leasehold".job_lease;
BEGIN
    SELECT l.* INTO page FROM "leasehold".job_lease l WHERE l.token = p_token AND l.worker = p_worker FOR UPDATE NOWAIT;
    IF NOT coalesce(page.ends[array_position(page.ids, p_id)] > coalesce(p_now, clock_timestamp()), false) THEN
        RETURN false;
    END IF;
    PERFORM 1 FROM "leasehold".job_note n WHERE n.job_id = p_id FOR UPDATE NOWAIT;
    INSERT INTO "leasehold".job_note (job_id, progress) VALUES (p_id, p_progress)
    ON CONFLICT (job_id) DO UPDATE SET progress = excluded.progress;
    RETURN true;
END
$$;

CREATE FUNCTION leasehold.leasehold_job_renew(p_now timestamp with time zone, p_worker text, p_pages bigint[], p_first integer[], p_ids bigint[], p_lease_us bigint) RETURNS SETOF bigint
    LANGUAGE plpgsql
    AS $$
DECLARE
    page "leasehold".job_lease;
    moment timestamptz;
    ends_at timestamptz;
    given bigint[];
BEGIN
    FOR i IN 1..cardinality(p_pages) LOOP
        SELECT l.* INTO page FROM "leasehold".job_lease l WHERE l.token = p_pages[i] AND l.worker = p_worker FOR UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        moment := coalesce(p_now, clock_timestamp());
        ends_at := moment + p_lease_us::double precision * interval '1 microsecond';
        given := p_ids[p_first[i]:coalesce(p_first[i + 1] - 1, cardinality(p_ids))];
        UPDATE "leasehold".job_lease l SET ends = r.ends, expires_at = r.expires_at
        FROM (
            SELECT array_agg(n.ends ORDER BY n.ordinal) AS ends, min(n.ends) AS expires_at
            FROM (
                SELECT e.ordinal, CASE WHEN e.ends > moment AND e.id = ANY (given) THEN ends_at ELSE e.ends END AS ends
                FROM unnest(page.ids, page.ends) WITH ORDINALITY AS e (id, ends, ordinal)
            ) n
        ) r
        WHERE l.token = page.token;
        RETURN QUERY SELECT e.id FROM unnest(page.ids, page.ends) AS e (id, ends) WHERE e.ends > moment AND e.id = ANY (given);
    END LOOP;
END
$$;

CREATE FUNCTION leasehold.leasehold_notify() RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
    -- A transaction that notified cannot be prepared for two-phase commit.
    IF pg_catalog.pg_try_advisory_xact_lock_shared(7308332187)
        OR pg_catalog.current_setting('leasehold.notify', true) = 'off'
    THEN
        RETURN false;
    END IF;
    PERFORM pg_catalog.pg_notify('leasehold', 'work');
    RETURN true;
END
$$;

CREATE FUNCTION leasehold.leasehold_promote_due(now timestamp with time zone, most integer) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
DECLARE
    promoted bigint;
BEGIN
    PERFORM 1 FROM "leasehold".workflow_execution_queue WHERE NOT due AND run_at <= now LIMIT 1;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    -- Lock order: the lock of the fold comes before row locks.
    PERFORM pg_advisory_xact_lock(7308332186);
    WITH passed AS MATERIALIZED (
        SELECT ctid AS tid FROM "leasehold".workflow_execution_queue
        WHERE NOT due AND run_at <= now
        ORDER BY run_at LIMIT most
        FOR UPDATE SKIP LOCKED
    ), lined AS (
        UPDATE "leasehold".workflow_execution_queue q SET due = true FROM passed WHERE q.ctid = passed.tid
        RETURNING q.workspace_id, q.rank, q.created_at, q.execution_id
    ), noted AS (
        INSERT INTO "leasehold".workspace_delta (workspace_id, rank, line_at)
        SELECT workspace_id, min(rank), min(created_at) FROM lined WHERE execution_id IS NULL GROUP BY workspace_id
    )
    SELECT count(*) INTO promoted FROM lined;
    RETURN promoted;
END
$$;

CREATE FUNCTION leasehold.leasehold_prune_requests(completed_before timestamp with time zone, completed_from timestamp with time zone, failed_before timestamp with time zone, failed_from timestamp with time zone, most integer) RETURNS TABLE(pruned bigint, completed_to timestamp with time zone, failed_to timestamp with time zone, more boolean)
    LANGUAGE plpgsql
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
DECLARE
    last "leasehold".request_fold;
    doomed uuid[];
    others uuid[];
    part uuid[];
    rest integer;
    more_failed boolean;
    skipped integer := 0;
BEGIN
    PERFORM set_config('lock_timeout', '20ms', true);
    SELECT * INTO last FROM "leasehold".request_fold ORDER BY id DESC LIMIT 1;
    -- What folds left behind because it was locked.
    DELETE FROM "leasehold".request_fold WHERE id = ANY (ARRAY(SELECT id FROM "leasehold".request_fold WHERE id < last.id FOR UPDATE SKIP LOCKED));
    DELETE FROM "leasehold".workspace_delta WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM "leasehold".workspace_delta WHERE xid < pg_snapshot_xmin(last.position) FOR UPDATE SKIP LOCKED));
    pruned := 0;
    -- Reads `old` only as far as needed, so in the ordinary case only the requests to delete.
    WITH old AS MATERIALIZED (
        SELECT request_id AS id, finished_at AS at FROM "leasehold".workflow_execution
        WHERE status = 'COMPLETED' AND finished_at < completed_before AND finished_at >= coalesce(completed_from, '-infinity')
        ORDER BY finished_at LIMIT most * 10
    ), free AS MATERIALIZED (
        SELECT o.id, o.at FROM old o CROSS JOIN LATERAL (
            SELECT 1 FROM "leasehold".workflow_execution_queue q
            WHERE q.id = o.id AND q.status IN ('COMPLETED', 'FAILED')
            LIMIT 1 FOR UPDATE SKIP LOCKED
        ) q LIMIT most
    )
    SELECT array_agg(f.id), coalesce(CASE WHEN count(*) < most THEN (SELECT max(o.at) FROM old o) ELSE max(f.at) END, completed_from),
        CASE WHEN count(*) < most THEN (SELECT count(*) FROM old) = most * 10 ELSE true END
    INTO doomed, completed_to, more FROM free f;
    rest := most - coalesce(cardinality(doomed), 0);
    WITH old AS MATERIALIZED (
        SELECT id, failed_at AS at FROM "leasehold".workflow_execution_queue
        WHERE failed_at < failed_before AND failed_at >= coalesce(failed_from, '-infinity')
        ORDER BY failed_at LIMIT most * 10
    ), free AS MATERIALIZED (
        SELECT o.id, o.at FROM old o CROSS JOIN LATERAL (
            SELECT 1 FROM "leasehold".workflow_execution_queue q
            WHERE q.id = o.id
            LIMIT 1 FOR UPDATE SKIP LOCKED
        ) q LIMIT rest
    )
    SELECT array_agg(f.id), coalesce(CASE WHEN count(*) < rest THEN (SELECT max(o.at) FROM old o) ELSE max(f.at) END, failed_from),
        CASE WHEN count(*) < rest THEN (SELECT count(*) FROM old) = most * 10 ELSE true END
    INTO others, failed_to, more_failed FROM free f;
    doomed := doomed || others;
    more := more OR more_failed;
    -- First all in one part. If one of them has a locked row, those without one. If another was locked meanwhile, each in a part of its own.
    FOR try IN 0 .. coalesce(cardinality(doomed), 0) + 1 LOOP
        IF try = 1 THEN
            WITH execution AS MATERIALIZED (
                SELECT e.id, e.request_id FROM "leasehold".workflow_execution e WHERE e.request_id = ANY (doomed)
            ), free_execution AS MATERIALIZED (
                SELECT e.id FROM "leasehold".workflow_execution e WHERE e.request_id = ANY (doomed) FOR UPDATE SKIP LOCKED
            ), free_graph AS MATERIALIZED (
                SELECT g.execution_id FROM "leasehold".execution_graph g
                WHERE g.execution_id = ANY (ARRAY(SELECT e.id FROM execution e)) FOR UPDATE SKIP LOCKED
            ), free_node AS MATERIALIZED (
                SELECT n.execution_id, n.node FROM "leasehold".execution_node n
                WHERE n.execution_id = ANY (ARRAY(SELECT e.id FROM execution e)) FOR UPDATE SKIP LOCKED
            ), locked AS (
                SELECT e.request_id FROM execution e WHERE e.id NOT IN (SELECT f.id FROM free_execution f)
                UNION ALL
                SELECT e.request_id FROM execution e JOIN "leasehold".execution_graph g ON g.execution_id = e.id
                WHERE g.execution_id NOT IN (SELECT f.execution_id FROM free_graph f)
                UNION ALL
                SELECT e.request_id FROM execution e JOIN "leasehold".execution_node n ON n.execution_id = e.id
                WHERE (n.execution_id, n.node) NOT IN (SELECT f.execution_id, f.node FROM free_node f)
            )
            SELECT array_agg(d.id) INTO doomed FROM unnest(doomed) AS d (id) WHERE d.id NOT IN (SELECT l.request_id FROM locked l);
        END IF;
        EXIT WHEN doomed IS NULL OR skipped > 10 OR try > cardinality(doomed) + 1;
        part := CASE WHEN try <= 1 THEN doomed ELSE doomed[try - 1:try - 1] END;
        BEGIN
            WITH kept AS (
                INSERT INTO "leasehold".kept_key AS k (workspace_id, request_id, definition_id, dedupe_until, key, params_hash)
                SELECT q.workspace_id, q.id, q.definition_id, q.dedupe_until, q.idempotency_key,
                    sha256(convert_to(q.params::text, 'UTF8'))
                FROM "leasehold".workflow_execution_queue q
                WHERE q.id = ANY (part) AND q.idempotency_key IS NOT NULL AND q.dedupe_until IS NOT NULL
                ORDER BY q.workspace_id, q.idempotency_key COLLATE "C"
                ON CONFLICT (workspace_id, key) DO UPDATE
                SET request_id = excluded.request_id, definition_id = excluded.definition_id, dedupe_until = excluded.dedupe_until,
                    params_hash = excluded.params_hash
                WHERE k.dedupe_until < excluded.dedupe_until
            ), gone AS (
                DELETE FROM "leasehold".workflow_execution_queue WHERE id = ANY (part) RETURNING workspace_id, status
            ), noted AS (
                INSERT INTO "leasehold".workspace_delta (workspace_id, completed, failed)
                SELECT workspace_id, -count(*) FILTER (WHERE status = 'COMPLETED'), -count(*) FILTER (WHERE status = 'FAILED')
                FROM gone GROUP BY workspace_id
            )
            SELECT pruned + count(*) INTO pruned FROM gone;
            EXIT WHEN try <= 1;
        EXCEPTION WHEN lock_not_available THEN
            skipped := skipped + (try > 1)::integer;
        END;
    END LOOP;
    -- Many requests may have ended at the same time. If none of them could be deleted, the next call begins after it.
    IF pruned = 0 THEN
        completed_to := CASE WHEN completed_to <= completed_from THEN completed_from + interval '1 microsecond' ELSE completed_to END;
        failed_to := CASE WHEN failed_to <= failed_from THEN failed_from + interval '1 microsecond' ELSE failed_to END;
    END IF;
    RETURN NEXT;
END
$$;

CREATE PROCEDURE leasehold.leasehold_rebuild()
    LANGUAGE plpgsql
    AS $$
DECLARE
    counted uuid := '00000000-0000-0000-0000-000000000000'::uuid;
BEGIN
    COMMIT;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    LOOP
        SELECT w.id INTO counted FROM "leasehold".workspace w WHERE w.id > counted ORDER BY w.id LIMIT 1;
        EXIT WHEN NOT FOUND;
        PERFORM "leasehold".leasehold_recount(counted);
        PERFORM "leasehold".leasehold_notify();
        COMMIT AND CHAIN;
    END LOOP;
END
$$;

CREATE FUNCTION leasehold.leasehold_recount(of_workspace uuid) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
DECLARE
    was_wrong boolean;
BEGIN
    IF current_setting('transaction_isolation'::text) <> 'read committed'::text THEN
        RAISE EXCEPTION 'leasehold_recount needs isolation level READ COMMITTED, the transaction has %',
            current_setting('transaction_isolation'::text) USING ERRCODE = 'invalid_transaction_state';
    END IF;
    PERFORM pg_advisory_xact_lock(7308332200::bigint);
    WITH turn AS (
        SELECT t.pending, t.claimed, t.dispatched, t.completed, t.failed, t.open_bytes FROM "leasehold".workspace_turn t
        WHERE t.workspace_id = of_workspace ORDER BY t.turn DESC LIMIT 1
    ), counted AS (
        SELECT count(*) FILTER (WHERE q.status = 'PENDING') AS pending,
            count(*) FILTER (WHERE q.status = 'CLAIMED') AS claimed,
            count(*) FILTER (WHERE q.status = 'DISPATCHED') AS dispatched,
            count(*) FILTER (WHERE q.status = 'COMPLETED') AS completed,
            count(*) FILTER (WHERE q.status = 'FAILED') AS failed,
            coalesce(sum(q.bytes + coalesce(q.execution_bytes, 0)) FILTER (WHERE q.finished_at IS NULL), 0)::bigint AS open_bytes
        FROM "leasehold".workflow_execution_queue q WHERE q.workspace_id = of_workspace
    ), fresh AS (
        SELECT coalesce(sum(d.pending), 0)::bigint AS pending, coalesce(sum(d.claimed), 0)::bigint AS claimed,
            coalesce(sum(d.dispatched), 0)::bigint AS dispatched, coalesce(sum(d.completed), 0)::bigint AS completed,
            coalesce(sum(d.failed), 0)::bigint AS failed, coalesce(sum(d.open_bytes), 0)::bigint AS open_bytes
        FROM (SELECT f.position, f.events_from FROM "leasehold".request_fold f ORDER BY f.id DESC LIMIT 1) f CROSS JOIN LATERAL (
            SELECT (e.to_status = 'PENDING')::int - (e.from_status IS NOT DISTINCT FROM 'PENDING')::int AS pending,
                (e.to_status = 'CLAIMED')::int - (e.from_status IS NOT DISTINCT FROM 'CLAIMED')::int AS claimed,
                (e.to_status = 'DISPATCHED')::int - (e.from_status IS NOT DISTINCT FROM 'DISPATCHED')::int AS dispatched,
                (e.to_status = 'COMPLETED')::int AS completed, (e.to_status = 'FAILED')::int AS failed, e.bytes AS open_bytes
            FROM (
                SELECT workspace_id, from_status, to_status, bytes FROM "leasehold".request_event
                WHERE xid >= pg_snapshot_xmax(f.position) AND id >= f.events_from
                UNION ALL
                SELECT workspace_id, from_status, to_status, bytes FROM "leasehold".request_event
                WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(f.position))) AND id >= f.events_from
            ) e
            WHERE e.workspace_id = of_workspace
            UNION ALL
            SELECT d.pending, d.claimed, d.dispatched, d.completed, d.failed, d.open_bytes
            FROM (
                SELECT * FROM "leasehold".workspace_delta WHERE xid >= pg_snapshot_xmax(f.position)
                UNION ALL
                SELECT * FROM "leasehold".workspace_delta WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(f.position)))
            ) d
            WHERE d.workspace_id = of_workspace
        ) d
    )
    INSERT INTO "leasehold".workspace_delta AS w (workspace_id, anew, pending, claimed, dispatched, completed, failed, open_bytes)
    SELECT of_workspace, true, c.pending - t.pending - f.pending, c.claimed - t.claimed - f.claimed,
        c.dispatched - t.dispatched - f.dispatched, c.completed - t.completed - f.completed, c.failed - t.failed - f.failed,
        c.open_bytes - t.open_bytes - f.open_bytes
    FROM turn t, counted c, fresh f
    RETURNING (w.pending, w.claimed, w.dispatched, w.completed, w.failed, w.open_bytes) <> (0::bigint, 0::bigint, 0::bigint, 0::bigint,
        0::bigint, 0::bigint) INTO was_wrong;
    RETURN coalesce(was_wrong, false);
END
$$;

CREATE FUNCTION leasehold.leasehold_refuse() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
BEGIN
    RAISE EXCEPTION 'write violates constraint "%" of table "%"', TG_ARGV[0], TG_TABLE_NAME
        USING ERRCODE = 'check_violation', CONSTRAINT = TG_ARGV[0], TABLE = TG_TABLE_NAME;
END
$$;

CREATE FUNCTION leasehold.leasehold_shedlock_token() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
DECLARE
    base bigint;
BEGIN
    SELECT CASE WHEN e.server_started_at = pg_postmaster_start_time() THEN e.token_base
        ELSE greatest(e.token_base,
            (extract(epoch FROM clock_timestamp() - '2026-01-01 00:00:00+00'::timestamptz) * 1000::numeric)::bigint << 10) END
    INTO base FROM "leasehold".epoch e ORDER BY e.number DESC, e.opened_at DESC, e.id DESC LIMIT 1;
    NEW.fencing_token := greatest(CASE WHEN TG_OP = 'INSERT'::text THEN NEW.fencing_token ELSE OLD.fencing_token + 1::bigint END,
        coalesce(base, 0::bigint) + 1::bigint);
    RETURN NEW;
END
$$;

CREATE FUNCTION leasehold.leasehold_take_slots(workspaces uuid[], slots bigint[], lowest bigint[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
DECLARE
    rejected uuid;
    served bigint;
BEGIN
    FOR try IN 1..2 LOOP
        WITH taken AS (
            UPDATE "leasehold".workspace_turn t
            SET held_at_most = CASE WHEN t.held_at_most + w.slots <= t.concurrency_limit THEN t.held_at_most + w.slots
                    -- leasehold_count_running, inlined: the call costs more than the count.
                    ELSE (
                        SELECT count(*) FROM "leasehold".workflow_execution e
                        WHERE e.workspace_id = w.id AND e.status = 'RUNNING' AND e.admission >= t.oldest_admission
                    ) + (
                        SELECT count(*) FROM unnest(t.stragglers) AS s (admission) CROSS JOIN LATERAL (
                            SELECT 1 FROM "leasehold".workflow_execution e
                            WHERE e.workspace_id = w.id AND e.status = 'RUNNING' AND e.admission = s.admission
                            LIMIT 1
                        ) e
                    ) END,
                written_by = pg_current_xact_id()
            FROM unnest(workspaces, slots, lowest) AS w (id, slots, lowest) CROSS JOIN LATERAL (
                SELECT ctid AS tid, written_by FROM "leasehold".workspace_turn WHERE workspace_id = w.id ORDER BY turn DESC LIMIT 1
            ) n
            -- Also compares written_by: older PostgreSQL releases do not check ctid again after waiting for the row.
            WHERE t.ctid = n.tid AND t.written_by = n.written_by
            RETURNING t.workspace_id, t.held_at_most > t.concurrency_limit OR w.lowest < t.oldest_admission AS rejected
        )
        SELECT count(*), (array_agg(workspace_id) FILTER (WHERE taken.rejected))[1] INTO served, rejected FROM taken;
        EXIT WHEN served = cardinality(workspaces);
        -- The second try counts again what the first try wrote: held_at_most may be too high, never too low.
        PERFORM 1 FROM unnest(workspaces) AS w (id) CROSS JOIN LATERAL (
            SELECT 1 FROM "leasehold".workspace_turn WHERE workspace_id = w.id ORDER BY turn DESC LIMIT 1 FOR UPDATE
        ) t;
    END LOOP;
    IF rejected IS NOT NULL OR served < cardinality(workspaces) THEN
        RAISE EXCEPTION 'workspace % has no free slot', coalesce(rejected, workspaces[1])
            USING ERRCODE = 'check_violation', CONSTRAINT = 'workspace_limit', TABLE = 'workflow_execution';
    END IF;
END
$$;

CREATE FUNCTION leasehold.leasehold_uuid7() RETURNS uuid
    LANGUAGE sql
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
    SELECT pg_catalog.encode(
        set_byte(set_byte(
            overlay(uuid_send(gen_random_uuid())
                PLACING substring(int8send((extract(epoch FROM clock_timestamp()) * 1000::numeric)::bigint) FROM 3)
                FROM 1 FOR 6),
            6, (get_byte(uuid_send(gen_random_uuid()), 6) & 15) | 112),
            8, (get_byte(uuid_send(gen_random_uuid()), 8) & 63) | 128), 'hex')::uuid
$$;

CREATE FUNCTION leasehold.leasehold_workspace_sync_turn() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO "leasehold".workspace_turn (workspace_id, concurrency_limit, paused, deleted)
        VALUES (NEW.id, NEW.concurrency_limit, NEW.paused, NEW.deleted_at IS NOT NULL);
    ELSE
        UPDATE "leasehold".workspace_turn
        SET concurrency_limit = NEW.concurrency_limit,
            paused = NEW.paused,
            deleted = NEW.deleted_at IS NOT NULL,
            ready = ready AND (NEW.deleted_at IS NOT NULL OR (NOT NEW.paused AND NEW.concurrency_limit > 0)),
            has_room = true,
            written_by = pg_current_xact_id()
        WHERE workspace_id = NEW.id;
        INSERT INTO "leasehold".workspace_delta (workspace_id, anew) VALUES (NEW.id, true);
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION leasehold.leasehold_workspace_turn_limit() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
BEGIN
    PERFORM 1 FROM "leasehold".workspace w
    WHERE w.id = NEW.workspace_id AND w.concurrency_limit = NEW.concurrency_limit AND w.paused = NEW.paused
        AND (w.deleted_at IS NOT NULL) = NEW.deleted;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'workspace_turn of workspace % must have the limit, pause and deletion of the workspace', NEW.workspace_id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'workspace_turn_limit', TABLE = 'workspace_turn';
    END IF;
    RETURN NEW;
END
$$;

CREATE FUNCTION leasehold.leasehold_workspace_turn_once() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'leasehold', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
BEGIN
    PERFORM 1 FROM "leasehold".workspace WHERE id = NEW.workspace_id FOR UPDATE;
    IF NOT FOUND OR EXISTS (SELECT 1 FROM "leasehold".workspace_turn WHERE workspace_id = NEW.workspace_id) THEN
        RAISE EXCEPTION 'workspace % does not exist, or has a workspace_turn row already', NEW.workspace_id
            USING ERRCODE = 'unique_violation', CONSTRAINT = 'workspace_turn_once', TABLE = 'workspace_turn';
    END IF;
    RETURN NEW;
END
$$;

CREATE SEQUENCE leasehold.admission_number
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE leasehold.api_key (
    id uuid NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    workspace_id uuid,
    queues text[],
    access text DEFAULT 'full'::text NOT NULL,
    payloads text DEFAULT 'shown'::text NOT NULL,
    hash bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    last_used_at timestamp with time zone,
    revoked_at timestamp with time zone,
    successor_id uuid,
    CONSTRAINT api_key_access CHECK ((access = ANY (ARRAY['full'::text, 'read'::text]))),
    CONSTRAINT api_key_hash_length CHECK ((octet_length(hash) = 32)),
    CONSTRAINT api_key_kind CHECK ((kind = ANY (ARRAY['admin'::text, 'workspace'::text, 'worker'::text, 'metrics'::text]))),
    CONSTRAINT api_key_name_length CHECK (((length(name) >= 1) AND (length(name) <= 200))),
    CONSTRAINT api_key_payloads CHECK ((payloads = ANY (ARRAY['shown'::text, 'hidden'::text]))),
    CONSTRAINT api_key_queues CHECK (
CASE
    WHEN (kind = 'worker'::text) THEN ((queues IS NOT NULL) AND (cardinality(queues) > 0) AND (array_position(queues, NULL::text) IS NULL))
    ELSE (queues IS NULL)
END),
    CONSTRAINT api_key_workspace CHECK (((kind = 'workspace'::text) = (workspace_id IS NOT NULL)))
);

CREATE TABLE leasehold.audit_entry (
    id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    key_id uuid,
    actor text NOT NULL,
    action text NOT NULL,
    workspace_id uuid,
    target text NOT NULL,
    details jsonb NOT NULL,
    CONSTRAINT audit_entry_action_length CHECK (((length(action) >= 1) AND (length(action) <= 64)))
);

CREATE TABLE leasehold.epoch (
    id bigint NOT NULL,
    number integer NOT NULL,
    system_identifier bigint NOT NULL,
    timeline integer NOT NULL,
    server_started_at timestamp with time zone NOT NULL,
    database oid NOT NULL,
    cause text NOT NULL,
    start_xid xid8 NOT NULL,
    start_lsn pg_lsn NOT NULL,
    token_base bigint NOT NULL,
    job_xid_offset bigint NOT NULL,
    first_event_id bigint NOT NULL,
    opened_at timestamp with time zone NOT NULL,
    opened_by text NOT NULL,
    mark_xid xid8 NOT NULL,
    mark_job_id bigint NOT NULL,
    mark_job_token bigint NOT NULL,
    mark_admission bigint NOT NULL,
    mark_event_id bigint NOT NULL,
    marked_at timestamp with time zone NOT NULL,
    CONSTRAINT epoch_cause CHECK ((cause = ANY (ARRAY['created'::text, 'restarted'::text, 'rewound'::text, 'failed_over'::text, 'copied'::text, 'moved'::text])))
)
WITH (fillfactor='50');

CREATE TABLE leasehold.event_partition (
    number bigint NOT NULL,
    begun_at timestamp with time zone NOT NULL,
    sealed xid8,
    writers text[] NOT NULL
);

CREATE TABLE leasehold.execution_graph (
    execution_id uuid NOT NULL,
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    deadline timestamp with time zone,
    state text NOT NULL,
    ended text,
    error text,
    CONSTRAINT execution_graph_ended CHECK ((ended = ANY (ARRAY['completed'::text, 'failed'::text, 'timed_out'::text, 'cancelled'::text, 'terminated'::text, 'lost'::text]))),
    CONSTRAINT execution_graph_finished CHECK (((ended IS NULL) = (finished_at IS NULL))),
    CONSTRAINT execution_graph_quiet CHECK (((ended IS NULL) OR (translate(state, 'wr'::text, ''::text) = state))),
    CONSTRAINT execution_graph_state CHECK (((state <> ''::text) AND (translate(state, 'wrcfx'::text, ''::text) = ''::text)))
)
WITH (fillfactor='80');

CREATE TABLE leasehold.execution_node (
    execution_id uuid NOT NULL,
    job_id bigint,
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    node smallint NOT NULL,
    output json,
    error text,
    CONSTRAINT execution_node_attempts CHECK ((attempts >= 0)),
    CONSTRAINT execution_node_output CHECK (((output IS NULL) OR ((finished_at IS NOT NULL) AND (error IS NULL)))),
    CONSTRAINT execution_node_place CHECK ((node >= 0))
)
WITH (fillfactor='80');

CREATE TABLE leasehold.installation (
    id smallint DEFAULT 1 NOT NULL,
    secret bytea NOT NULL,
    CONSTRAINT installation_once CHECK ((id = 1)),
    CONSTRAINT installation_secret CHECK ((octet_length(secret) = 32))
);

CREATE TABLE leasehold.installation_engine (
    id smallint DEFAULT 1 NOT NULL,
    kind text NOT NULL,
    namespace text NOT NULL,
    namespace_id text NOT NULL,
    cluster_id text NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    certain_from timestamp with time zone NOT NULL,
    CONSTRAINT installation_engine_once CHECK ((id = 1))
);

CREATE TABLE leasehold.instance (
    id text NOT NULL,
    version text NOT NULL,
    dispatches boolean NOT NULL,
    listens text,
    started_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    CONSTRAINT instance_id_length CHECK (((length(id) >= 1) AND (length(id) <= 200)))
)
WITH (fillfactor='50');

CREATE SEQUENCE leasehold.job_id
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE leasehold.job (
    id bigint DEFAULT nextval('leasehold.job_id'::regclass) NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    run_at timestamp with time zone,
    timeout_us bigint,
    backoff_base_us bigint,
    backoff_max_us bigint,
    backoff_factor double precision,
    backoff_jitter double precision,
    queue_id integer NOT NULL,
    max_attempts integer,
    priority smallint DEFAULT 0 NOT NULL,
    node smallint,
    execution_id uuid,
    kind text NOT NULL,
    payload json NOT NULL,
    trace_context text,
    CONSTRAINT job_kind_length CHECK (((length(kind) >= 1) AND (length(kind) <= 128))),
    CONSTRAINT job_node CHECK (((execution_id IS NULL) = (node IS NULL))),
    CONSTRAINT job_priority_range CHECK (((priority >= '-1000'::integer) AND (priority <= 1000))),
    CONSTRAINT job_run_at CHECK ((run_at < '9999-01-01 00:00:00+00'::timestamp with time zone))
);

CREATE TABLE leasehold.job_cursor (
    queue_id integer NOT NULL,
    priority smallint NOT NULL,
    version bigint NOT NULL,
    at_xid xid8 NOT NULL,
    at_id bigint NOT NULL,
    late_xid xid8[] NOT NULL,
    late_id bigint[] NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000');

CREATE TABLE leasehold.job_end (
    id bigint NOT NULL,
    finished_at timestamp with time zone NOT NULL,
    token bigint NOT NULL,
    attempts integer NOT NULL,
    status text NOT NULL,
    result json,
    last_error text,
    CONSTRAINT job_end_status CHECK ((status = ANY (ARRAY['completed'::text, 'failed'::text])))
);

CREATE TABLE leasehold.job_key (
    queue_id integer NOT NULL,
    key text NOT NULL,
    job_id bigint NOT NULL,
    holds_until timestamp with time zone,
    CONSTRAINT job_key_length CHECK (((length(key) >= 1) AND (length(key) <= 255))),
    CONSTRAINT job_key_window CHECK ((holds_until < '9999-01-01 00:00:00+00'::timestamp with time zone))
);

CREATE TABLE leasehold.job_lease (
    token bigint NOT NULL,
    claimed_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    queue_id integer NOT NULL,
    entries integer NOT NULL,
    nodes boolean NOT NULL,
    worker text NOT NULL,
    ids bigint[] NOT NULL,
    ends timestamp with time zone[] NOT NULL,
    attempts integer[] NOT NULL,
    CONSTRAINT job_lease_entries CHECK (((entries > 0) AND (entries = cardinality(ids)) AND (entries = cardinality(ends)) AND (entries = cardinality(attempts))))
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000');

CREATE TABLE leasehold.job_limit (
    one boolean DEFAULT true NOT NULL,
    max_running integer,
    CONSTRAINT job_limit_limit CHECK ((max_running >= 0)),
    CONSTRAINT job_limit_one CHECK (one)
);

CREATE TABLE leasehold.job_line (
    queue_id integer NOT NULL,
    priority smallint NOT NULL,
    queue text NOT NULL
);

CREATE TABLE leasehold.job_note (
    job_id bigint NOT NULL,
    progress json,
    last_error text
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000');

CREATE SEQUENCE leasehold.job_token
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE leasehold.job_waiting (
    job_id bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    run_at timestamp with time zone NOT NULL,
    token bigint DEFAULT 0 NOT NULL,
    queue_id integer NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    priority smallint NOT NULL,
    ready boolean NOT NULL,
    CONSTRAINT job_waiting_run_at CHECK ((run_at < '9999-01-01 00:00:00+00'::timestamp with time zone))
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='1000');

CREATE TABLE leasehold.kept_key (
    workspace_id uuid NOT NULL,
    request_id uuid NOT NULL,
    definition_id uuid NOT NULL,
    dedupe_until timestamp with time zone NOT NULL,
    key text NOT NULL,
    params_hash bytea NOT NULL,
    CONSTRAINT kept_key_hash CHECK ((octet_length(params_hash) = 32))
);

CREATE TABLE leasehold.leasehold_function (
    name text NOT NULL,
    release integer NOT NULL,
    checksum bigint NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT leasehold_function_release CHECK ((release > 0))
);

CREATE TABLE leasehold.leasehold_migration (
    number integer NOT NULL,
    name text NOT NULL,
    checksum bigint NOT NULL,
    compatible_from integer NOT NULL,
    applied_by text NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT leasehold_migration_compatible_from CHECK ((compatible_from > 0))
);

CREATE TABLE leasehold.node_spent (
    execution_id uuid NOT NULL,
    attempts integer NOT NULL,
    node smallint NOT NULL,
    error text NOT NULL
);

CREATE TABLE leasehold.queue (
    id integer NOT NULL,
    name text NOT NULL,
    max_running integer,
    paused boolean DEFAULT false NOT NULL,
    keep_completed boolean DEFAULT true NOT NULL,
    lease_us bigint DEFAULT 30000000 NOT NULL,
    max_attempts integer DEFAULT 25 NOT NULL,
    backoff_base_us bigint DEFAULT 1000000 NOT NULL,
    backoff_max_us bigint DEFAULT 300000000 NOT NULL,
    backoff_factor double precision DEFAULT 2 NOT NULL,
    backoff_jitter double precision DEFAULT 0.2 NOT NULL,
    timeout_us bigint,
    owner_id uuid,
    shared_with_all boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT queue_attempts CHECK ((max_attempts > 0)),
    CONSTRAINT queue_lease CHECK ((lease_us > 0)),
    CONSTRAINT queue_limit CHECK ((max_running >= 0)),
    CONSTRAINT queue_name_length CHECK (((length(name) >= 1) AND (length(name) <= 128))),
    CONSTRAINT queue_timeout CHECK ((timeout_us > 0))
);

ALTER TABLE leasehold.queue ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME leasehold.queue_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE leasehold.queue_share (
    queue_id integer NOT NULL,
    workspace_id uuid NOT NULL
);

CREATE TABLE leasehold.request_event (
    id bigint NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    request_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    from_status text,
    to_status text NOT NULL,
    at timestamp with time zone NOT NULL,
    rank smallint,
    line_at timestamp with time zone,
    bytes bigint,
    by_whom text NOT NULL,
    reason text
)
PARTITION BY RANGE (id);

CREATE TABLE leasehold.request_event_0 (
    id bigint NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    request_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    from_status text,
    to_status text NOT NULL,
    at timestamp with time zone NOT NULL,
    rank smallint,
    line_at timestamp with time zone,
    bytes bigint,
    by_whom text NOT NULL,
    reason text
);

CREATE TABLE leasehold.request_event_1 (
    id bigint NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    request_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    from_status text,
    to_status text NOT NULL,
    at timestamp with time zone NOT NULL,
    rank smallint,
    line_at timestamp with time zone,
    bytes bigint,
    by_whom text NOT NULL,
    reason text
);

CREATE TABLE leasehold.request_event_2 (
    id bigint NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    request_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    from_status text,
    to_status text NOT NULL,
    at timestamp with time zone NOT NULL,
    rank smallint,
    line_at timestamp with time zone,
    bytes bigint,
    by_whom text NOT NULL,
    reason text,
    CONSTRAINT request_event_ids CHECK (((id >= '2199023255552'::bigint) AND (id < '3298534883328'::bigint)))
);

CREATE TABLE leasehold.request_event_3 (
    id bigint NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    request_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    from_status text,
    to_status text NOT NULL,
    at timestamp with time zone NOT NULL,
    rank smallint,
    line_at timestamp with time zone,
    bytes bigint,
    by_whom text NOT NULL,
    reason text,
    CONSTRAINT request_event_ids CHECK (((id >= '3298534883328'::bigint) AND (id < '4398046511104'::bigint)))
);

CREATE TABLE leasehold.request_event_4 (
    id bigint NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    request_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    from_status text,
    to_status text NOT NULL,
    at timestamp with time zone NOT NULL,
    rank smallint,
    line_at timestamp with time zone,
    bytes bigint,
    by_whom text NOT NULL,
    reason text,
    CONSTRAINT request_event_ids CHECK (((id >= '4398046511104'::bigint) AND (id < '5497558138880'::bigint)))
);

CREATE TABLE leasehold.request_event_5 (
    id bigint NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    request_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    from_status text,
    to_status text NOT NULL,
    at timestamp with time zone NOT NULL,
    rank smallint,
    line_at timestamp with time zone,
    bytes bigint,
    by_whom text NOT NULL,
    reason text,
    CONSTRAINT request_event_ids CHECK (((id >= '5497558138880'::bigint) AND (id < '6597069766656'::bigint)))
);

CREATE TABLE leasehold.request_event_6 (
    id bigint NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    request_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    from_status text,
    to_status text NOT NULL,
    at timestamp with time zone NOT NULL,
    rank smallint,
    line_at timestamp with time zone,
    bytes bigint,
    by_whom text NOT NULL,
    reason text,
    CONSTRAINT request_event_ids CHECK (((id >= '6597069766656'::bigint) AND (id < '7696581394432'::bigint)))
);

CREATE TABLE leasehold.request_event_7 (
    id bigint NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    request_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    from_status text,
    to_status text NOT NULL,
    at timestamp with time zone NOT NULL,
    rank smallint,
    line_at timestamp with time zone,
    bytes bigint,
    by_whom text NOT NULL,
    reason text,
    CONSTRAINT request_event_ids CHECK (((id >= '7696581394432'::bigint) AND (id < '8796093022208'::bigint)))
);

CREATE TABLE leasehold.request_event_8 (
    id bigint NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    request_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    from_status text,
    to_status text NOT NULL,
    at timestamp with time zone NOT NULL,
    rank smallint,
    line_at timestamp with time zone,
    bytes bigint,
    by_whom text NOT NULL,
    reason text,
    CONSTRAINT request_event_ids CHECK (((id >= '8796093022208'::bigint) AND (id < '9895604649984'::bigint)))
);

CREATE TABLE leasehold.request_event_9 (
    id bigint NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    request_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    from_status text,
    to_status text NOT NULL,
    at timestamp with time zone NOT NULL,
    rank smallint,
    line_at timestamp with time zone,
    bytes bigint,
    by_whom text NOT NULL,
    reason text,
    CONSTRAINT request_event_ids CHECK (((id >= '9895604649984'::bigint) AND (id < '10995116277760'::bigint)))
);

ALTER TABLE leasehold.request_event ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME leasehold.request_event_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE leasehold.request_fold (
    id bigint NOT NULL,
    "position" pg_snapshot NOT NULL,
    folded_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    round_from bigint NOT NULL,
    events_from bigint DEFAULT 0 NOT NULL,
    parked uuid[] DEFAULT '{}'::uuid[] NOT NULL
);

ALTER TABLE leasehold.request_fold ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME leasehold.request_fold_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE leasehold.shedlock (
    name character varying(64) NOT NULL,
    lock_until timestamp without time zone NOT NULL,
    locked_at timestamp without time zone NOT NULL,
    locked_by character varying(255) NOT NULL,
    fencing_token bigint DEFAULT 1 NOT NULL
);

CREATE VIEW leasehold.work_queue AS
 SELECT j.id,
    q.name AS queue,
    j.kind,
        CASE
            WHEN (e.id IS NOT NULL) THEN e.status
            WHEN (l.token IS NOT NULL) THEN 'running'::text
            ELSE 'queued'::text
        END AS status,
    j.priority,
    j.payload,
    COALESCE(w.run_at, j.run_at, j.created_at) AS run_at,
    COALESCE(e.attempts, l.attempt, w.attempts, 0) AS attempts,
    l.worker AS claimed_by,
    l.lease_expires_at,
    l.claimed_at AS started_at,
    COALESCE(e.token, l.token, w.token, (0)::bigint) AS token,
    j.created_at,
    e.finished_at,
    COALESCE(e.last_error, n.last_error) AS last_error,
    e.result
   FROM (((((leasehold.job j
     JOIN leasehold.queue q ON ((q.id = j.queue_id)))
     LEFT JOIN leasehold.job_end e ON ((e.id = j.id)))
     LEFT JOIN leasehold.job_waiting w ON ((w.job_id = j.id)))
     LEFT JOIN leasehold.job_note n ON ((n.job_id = j.id)))
     LEFT JOIN ( SELECT l_1.token,
            l_1.worker,
            l_1.claimed_at,
            i.id,
            i.lease_expires_at,
            i.attempt
           FROM (leasehold.job_lease l_1
             CROSS JOIN LATERAL UNNEST(l_1.ids, l_1.ends, l_1.attempts) i(id, lease_expires_at, attempt))) l ON ((l.id = j.id)));

CREATE TABLE leasehold.workflow_definition (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    name text NOT NULL,
    current_version_id uuid,
    versions integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    deleted_at timestamp with time zone,
    CONSTRAINT workflow_definition_name_length CHECK (((length(name) >= 1) AND (length(name) <= 200))),
    CONSTRAINT workflow_definition_published CHECK (((current_version_id IS NULL) = (versions = 0)))
);

CREATE TABLE leasehold.workflow_definition_version (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    definition_id uuid NOT NULL,
    number integer NOT NULL,
    body jsonb NOT NULL,
    params_schema jsonb,
    execution_timeout_ms bigint,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT workflow_definition_version_timeout CHECK ((execution_timeout_ms > 0))
);

CREATE TABLE leasehold.workflow_execution (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    request_id uuid NOT NULL,
    definition_id uuid NOT NULL,
    version_id uuid NOT NULL,
    status text NOT NULL,
    admission bigint NOT NULL,
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    error text,
    CONSTRAINT execution_finished CHECK (((status = 'RUNNING'::text) = (finished_at IS NULL))),
    CONSTRAINT execution_status CHECK ((status = ANY (ARRAY['RUNNING'::text, 'COMPLETED'::text, 'FAILED'::text, 'CANCELLED'::text])))
)
WITH (fillfactor='80');

CREATE TABLE leasehold.workflow_execution_queue (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    definition_id uuid NOT NULL,
    version_id uuid NOT NULL,
    status text DEFAULT 'PENDING'::text NOT NULL,
    priority smallint DEFAULT 0 NOT NULL,
    rank smallint GENERATED ALWAYS AS ((- priority)) STORED NOT NULL,
    due boolean,
    attempt_count integer DEFAULT 0 NOT NULL,
    dispatch_failures integer DEFAULT 0 NOT NULL,
    run_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    claimed_at timestamp with time zone,
    dispatched_at timestamp with time zone,
    finished_at timestamp with time zone,
    failed_at timestamp with time zone GENERATED ALWAYS AS (
CASE
    WHEN (status = 'FAILED'::text) THEN finished_at
    ELSE NULL::timestamp with time zone
END) STORED,
    cancel_requested_at timestamp with time zone,
    cancel_told_at timestamp with time zone,
    cancel_untold timestamp with time zone GENERATED ALWAYS AS (
CASE
    WHEN ((status = 'DISPATCHED'::text) AND (cancel_told_at IS NULL)) THEN cancel_requested_at
    ELSE NULL::timestamp with time zone
END) STORED,
    cancel_force boolean DEFAULT false NOT NULL,
    lease_expires_at timestamp with time zone,
    dedupe_until timestamp with time zone,
    claim_token bigint DEFAULT 0 NOT NULL,
    bytes integer DEFAULT 0 NOT NULL,
    execution_bytes bigint,
    crashes smallint,
    crashes_alone smallint,
    crashed_process text,
    execution_id uuid,
    redrive_of uuid,
    live_redrive_of uuid,
    redriven boolean DEFAULT false NOT NULL,
    claimed_by text,
    failure_reason text,
    idempotency_key text,
    trace_context text,
    last_error text,
    params jsonb DEFAULT 'null'::jsonb NOT NULL
)
WITH (fillfactor='80');

CREATE TABLE leasehold.workspace (
    id uuid NOT NULL,
    name text NOT NULL,
    plan text NOT NULL,
    limit_override integer,
    concurrency_limit integer GENERATED ALWAYS AS (COALESCE(limit_override,
CASE plan
    WHEN 'FREE'::text THEN 1
    WHEN 'PRO'::text THEN 5
    ELSE 20
END)) STORED NOT NULL,
    max_pending_override bigint,
    max_pending bigint GENERATED ALWAYS AS (COALESCE(max_pending_override, (1000000)::bigint)) STORED NOT NULL,
    max_open_bytes_override bigint,
    max_open_bytes bigint GENERATED ALWAYS AS (COALESCE(max_open_bytes_override,
CASE plan
    WHEN 'FREE'::text THEN (67108864)::bigint
    WHEN 'PRO'::text THEN (536870912)::bigint
    ELSE '4294967296'::bigint
END)) STORED NOT NULL,
    paused boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    deleted_at timestamp with time zone,
    CONSTRAINT workspace_limit_range CHECK (((limit_override >= 0) AND (limit_override <= 100000))),
    CONSTRAINT workspace_max_open_bytes CHECK (((max_open_bytes_override >= 0) AND (max_open_bytes_override <= '1099511627776'::bigint))),
    CONSTRAINT workspace_max_pending CHECK (((max_pending_override >= 0) AND (max_pending_override <= 1000000000))),
    CONSTRAINT workspace_name_length CHECK (((length(name) >= 1) AND (length(name) <= 200))),
    CONSTRAINT workspace_plan CHECK ((plan = ANY (ARRAY['FREE'::text, 'PRO'::text, 'ENTERPRISE'::text])))
);

CREATE TABLE leasehold.workspace_catalog (
    workspace_id uuid NOT NULL,
    bytes bigint NOT NULL,
    CONSTRAINT workspace_catalog_bytes CHECK ((bytes >= 0))
);

CREATE TABLE leasehold.workspace_delta (
    id bigint NOT NULL,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    workspace_id uuid NOT NULL,
    anew boolean DEFAULT false NOT NULL,
    room boolean DEFAULT false NOT NULL,
    rank smallint,
    line_at timestamp with time zone,
    pending bigint DEFAULT 0 NOT NULL,
    claimed bigint DEFAULT 0 NOT NULL,
    dispatched bigint DEFAULT 0 NOT NULL,
    completed bigint DEFAULT 0 NOT NULL,
    failed bigint DEFAULT 0 NOT NULL,
    open_bytes bigint DEFAULT 0 NOT NULL
);

ALTER TABLE leasehold.workspace_delta ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME leasehold.workspace_delta_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE leasehold.workspace_turn (
    workspace_id uuid NOT NULL,
    concurrency_limit integer NOT NULL,
    paused boolean NOT NULL,
    deleted boolean DEFAULT false NOT NULL,
    ready boolean DEFAULT false NOT NULL,
    has_work boolean DEFAULT false NOT NULL,
    has_room boolean DEFAULT true NOT NULL,
    turn bigint DEFAULT 0 NOT NULL,
    oldest_admission bigint DEFAULT 0 NOT NULL,
    stragglers bigint[] DEFAULT '{}'::bigint[] NOT NULL,
    held_at_most bigint DEFAULT 0 NOT NULL,
    line_rank smallint DEFAULT '-32768'::integer NOT NULL,
    line_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    line_id uuid DEFAULT '00000000-0000-0000-0000-000000000000'::uuid NOT NULL,
    pending bigint DEFAULT 0 NOT NULL,
    claimed bigint DEFAULT 0 NOT NULL,
    dispatched bigint DEFAULT 0 NOT NULL,
    completed bigint DEFAULT 0 NOT NULL,
    failed bigint DEFAULT 0 NOT NULL,
    open_bytes bigint DEFAULT 0 NOT NULL,
    written_by xid8 DEFAULT pg_current_xact_id() NOT NULL,
    CONSTRAINT workspace_turn_limit_range CHECK (((concurrency_limit >= 0) AND (concurrency_limit <= 100000))),
    CONSTRAINT workspace_turn_paused CHECK ((NOT (ready AND paused AND (NOT deleted))))
)
WITH (fillfactor='70');

ALTER TABLE ONLY leasehold.request_event ATTACH PARTITION leasehold.request_event_0 FOR VALUES FROM ('0') TO ('1099511627776');

ALTER TABLE ONLY leasehold.request_event ATTACH PARTITION leasehold.request_event_1 FOR VALUES FROM ('1099511627776') TO ('2199023255552');

ALTER TABLE ONLY leasehold.api_key
    ADD CONSTRAINT api_key_hash_once UNIQUE (hash);

ALTER TABLE ONLY leasehold.api_key
    ADD CONSTRAINT api_key_pkey PRIMARY KEY (id);

ALTER TABLE ONLY leasehold.audit_entry
    ADD CONSTRAINT audit_entry_pkey PRIMARY KEY (id);

ALTER TABLE ONLY leasehold.epoch
    ADD CONSTRAINT epoch_pkey PRIMARY KEY (id);

ALTER TABLE ONLY leasehold.event_partition
    ADD CONSTRAINT event_partition_pkey PRIMARY KEY (number);

ALTER TABLE ONLY leasehold.execution_graph
    ADD CONSTRAINT execution_graph_pkey PRIMARY KEY (execution_id);

ALTER TABLE ONLY leasehold.execution_node
    ADD CONSTRAINT execution_node_pkey PRIMARY KEY (execution_id, node);

ALTER TABLE ONLY leasehold.workflow_execution
    ADD CONSTRAINT execution_request_once UNIQUE (request_id);

ALTER TABLE ONLY leasehold.installation_engine
    ADD CONSTRAINT installation_engine_pkey PRIMARY KEY (id);

ALTER TABLE ONLY leasehold.installation
    ADD CONSTRAINT installation_pkey PRIMARY KEY (id);

ALTER TABLE ONLY leasehold.instance
    ADD CONSTRAINT instance_pkey PRIMARY KEY (id);

ALTER TABLE ONLY leasehold.job_cursor
    ADD CONSTRAINT job_cursor_pkey PRIMARY KEY (queue_id, priority, version);

ALTER TABLE ONLY leasehold.job_end
    ADD CONSTRAINT job_end_pkey PRIMARY KEY (id);

ALTER TABLE ONLY leasehold.job_key
    ADD CONSTRAINT job_key_pkey PRIMARY KEY (queue_id, key);

ALTER TABLE ONLY leasehold.job_lease
    ADD CONSTRAINT job_lease_pkey PRIMARY KEY (token);

ALTER TABLE ONLY leasehold.job_limit
    ADD CONSTRAINT job_limit_pkey PRIMARY KEY (one);

ALTER TABLE ONLY leasehold.job_line
    ADD CONSTRAINT job_line_pkey PRIMARY KEY (queue_id, priority);

ALTER TABLE ONLY leasehold.job_note
    ADD CONSTRAINT job_note_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY leasehold.job
    ADD CONSTRAINT job_pkey PRIMARY KEY (id);

ALTER TABLE ONLY leasehold.job_waiting
    ADD CONSTRAINT job_waiting_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY leasehold.kept_key
    ADD CONSTRAINT kept_key_pkey PRIMARY KEY (workspace_id, key);

ALTER TABLE ONLY leasehold.leasehold_function
    ADD CONSTRAINT leasehold_function_pkey PRIMARY KEY (name);

ALTER TABLE ONLY leasehold.leasehold_migration
    ADD CONSTRAINT leasehold_migration_pkey PRIMARY KEY (number);

ALTER TABLE ONLY leasehold.node_spent
    ADD CONSTRAINT node_spent_pkey PRIMARY KEY (execution_id, node);

ALTER TABLE ONLY leasehold.queue
    ADD CONSTRAINT queue_name UNIQUE (name);

ALTER TABLE ONLY leasehold.queue
    ADD CONSTRAINT queue_pkey PRIMARY KEY (id);

ALTER TABLE ONLY leasehold.queue_share
    ADD CONSTRAINT queue_share_pkey PRIMARY KEY (queue_id, workspace_id);

ALTER TABLE ONLY leasehold.request_event
    ADD CONSTRAINT request_event_pkey PRIMARY KEY (request_id, id);

ALTER TABLE ONLY leasehold.request_event_0
    ADD CONSTRAINT request_event_0_pkey PRIMARY KEY (request_id, id);

ALTER TABLE ONLY leasehold.request_event_1
    ADD CONSTRAINT request_event_1_pkey PRIMARY KEY (request_id, id);

ALTER TABLE ONLY leasehold.request_event_2
    ADD CONSTRAINT request_event_2_pkey PRIMARY KEY (request_id, id);

ALTER TABLE ONLY leasehold.request_event_3
    ADD CONSTRAINT request_event_3_pkey PRIMARY KEY (request_id, id);

ALTER TABLE ONLY leasehold.request_event_4
    ADD CONSTRAINT request_event_4_pkey PRIMARY KEY (request_id, id);

ALTER TABLE ONLY leasehold.request_event_5
    ADD CONSTRAINT request_event_5_pkey PRIMARY KEY (request_id, id);

ALTER TABLE ONLY leasehold.request_event_6
    ADD CONSTRAINT request_event_6_pkey PRIMARY KEY (request_id, id);

ALTER TABLE ONLY leasehold.request_event_7
    ADD CONSTRAINT request_event_7_pkey PRIMARY KEY (request_id, id);

ALTER TABLE ONLY leasehold.request_event_8
    ADD CONSTRAINT request_event_8_pkey PRIMARY KEY (request_id, id);

ALTER TABLE ONLY leasehold.request_event_9
    ADD CONSTRAINT request_event_9_pkey PRIMARY KEY (request_id, id);

ALTER TABLE ONLY leasehold.request_fold
    ADD CONSTRAINT request_fold_pkey PRIMARY KEY (id);

ALTER TABLE ONLY leasehold.shedlock
    ADD CONSTRAINT shedlock_pkey PRIMARY KEY (name);

ALTER TABLE ONLY leasehold.workflow_definition
    ADD CONSTRAINT workflow_definition_pkey PRIMARY KEY (id);

ALTER TABLE ONLY leasehold.workflow_definition_version
    ADD CONSTRAINT workflow_definition_version_number UNIQUE (definition_id, number);

ALTER TABLE ONLY leasehold.workflow_definition_version
    ADD CONSTRAINT workflow_definition_version_pkey PRIMARY KEY (id);

ALTER TABLE ONLY leasehold.workflow_execution
    ADD CONSTRAINT workflow_execution_pkey PRIMARY KEY (id);

ALTER TABLE ONLY leasehold.workflow_execution_queue
    ADD CONSTRAINT workflow_execution_queue_pkey PRIMARY KEY (id);

ALTER TABLE ONLY leasehold.workspace_catalog
    ADD CONSTRAINT workspace_catalog_pkey PRIMARY KEY (workspace_id);

ALTER TABLE ONLY leasehold.workspace_delta
    ADD CONSTRAINT workspace_delta_pkey PRIMARY KEY (xid, id);

ALTER TABLE ONLY leasehold.workspace
    ADD CONSTRAINT workspace_pkey PRIMARY KEY (id);

ALTER TABLE ONLY leasehold.workspace_turn
    ADD CONSTRAINT workspace_turn_pkey PRIMARY KEY (workspace_id, turn);

CREATE INDEX api_key_admin ON leasehold.api_key USING btree (kind) WHERE ((kind = 'admin'::text) AND (revoked_at IS NULL));

CREATE INDEX api_key_list ON leasehold.api_key USING btree (workspace_id, id) WHERE (workspace_id IS NOT NULL);

CREATE INDEX audit_entry_action ON leasehold.audit_entry USING btree (action, id);

CREATE INDEX audit_entry_at ON leasehold.audit_entry USING btree (at);

CREATE INDEX audit_entry_key ON leasehold.audit_entry USING btree (key_id, id) WHERE (key_id IS NOT NULL);

CREATE INDEX audit_entry_workspace ON leasehold.audit_entry USING btree (workspace_id, id) WHERE (workspace_id IS NOT NULL);

CREATE INDEX epoch_newest ON leasehold.epoch USING btree (number, opened_at, id);

CREATE UNIQUE INDEX epoch_present ON leasehold.epoch USING btree (server_started_at, system_identifier, timeline, database, number);

CREATE INDEX execution_completed ON leasehold.workflow_execution USING btree (finished_at) WHERE (status = 'COMPLETED'::text);

CREATE INDEX execution_graph_deadline ON leasehold.execution_graph USING btree (deadline) WHERE ((finished_at IS NULL) AND (deadline IS NOT NULL));

CREATE INDEX execution_list ON leasehold.workflow_execution USING btree (workspace_id, admission);

CREATE INDEX execution_running ON leasehold.workflow_execution USING btree (workspace_id, admission) WHERE (status = 'RUNNING'::text);

CREATE INDEX instance_seen ON leasehold.instance USING btree (seen_at);

CREATE INDEX job_end_age ON leasehold.job_end USING btree (status, finished_at);

CREATE INDEX job_end_failed ON leasehold.job_end USING btree (id) WHERE (status = 'failed'::text);

CREATE INDEX job_fresh ON leasehold.job USING btree (queue_id, priority, xid, id) WHERE (run_at IS NULL);

CREATE INDEX job_key_job ON leasehold.job_key USING btree (job_id);

CREATE INDEX job_key_passing ON leasehold.job_key USING btree (holds_until) WHERE (holds_until IS NOT NULL);

CREATE INDEX job_lease_expiry ON leasehold.job_lease USING btree (expires_at);

CREATE INDEX job_lease_nodes ON leasehold.job_lease USING btree (queue_id, token) WHERE nodes;

CREATE INDEX job_lease_queue ON leasehold.job_lease USING btree (queue_id, token);

CREATE INDEX job_scheduled ON leasehold.job USING btree (queue_id, id) WHERE (run_at IS NOT NULL);

CREATE INDEX job_waiting_due ON leasehold.job_waiting USING btree (queue_id, run_at, job_id) WHERE (NOT ready);

CREATE INDEX job_waiting_ready ON leasehold.job_waiting USING btree (queue_id, priority, created_at, job_id) WHERE ready;

CREATE INDEX kept_key_until ON leasehold.kept_key USING btree (dedupe_until);

CREATE INDEX queue_of_owner ON leasehold.queue USING btree (owner_id) WHERE (owner_id IS NOT NULL);

CREATE INDEX request_cancel_untold ON leasehold.workflow_execution_queue USING btree (cancel_untold, id) WHERE (cancel_untold IS NOT NULL);

CREATE INDEX request_dedupe_until ON leasehold.workflow_execution_queue USING btree (dedupe_until) WHERE ((idempotency_key IS NOT NULL) AND (dedupe_until IS NOT NULL));

CREATE INDEX request_event_commit ON ONLY leasehold.request_event USING btree (xid, id);

CREATE INDEX request_event_0_xid_id_idx ON leasehold.request_event_0 USING btree (xid, id);

CREATE INDEX request_event_1_xid_id_idx ON leasehold.request_event_1 USING btree (xid, id);

CREATE INDEX request_event_2_xid_id_idx ON leasehold.request_event_2 USING btree (xid, id);

CREATE INDEX request_event_3_xid_id_idx ON leasehold.request_event_3 USING btree (xid, id);

CREATE INDEX request_event_4_xid_id_idx ON leasehold.request_event_4 USING btree (xid, id);

CREATE INDEX request_event_5_xid_id_idx ON leasehold.request_event_5 USING btree (xid, id);

CREATE INDEX request_event_6_xid_id_idx ON leasehold.request_event_6 USING btree (xid, id);

CREATE INDEX request_event_7_xid_id_idx ON leasehold.request_event_7 USING btree (xid, id);

CREATE INDEX request_event_8_xid_id_idx ON leasehold.request_event_8 USING btree (xid, id);

CREATE INDEX request_event_9_xid_id_idx ON leasehold.request_event_9 USING btree (xid, id);

CREATE INDEX request_failed ON leasehold.workflow_execution_queue USING btree (workspace_id, id) WHERE (failure_reason IS NOT NULL);

CREATE INDEX request_failed_at ON leasehold.workflow_execution_queue USING btree (failed_at) WHERE (failed_at IS NOT NULL);

CREATE UNIQUE INDEX request_idempotency_key ON leasehold.workflow_execution_queue USING btree (workspace_id, idempotency_key) WHERE (idempotency_key IS NOT NULL);

CREATE INDEX request_kept ON leasehold.workflow_execution_queue USING btree (created_at, id) WHERE (due AND (execution_id IS NOT NULL));

CREATE INDEX request_lease ON leasehold.workflow_execution_queue USING btree (lease_expires_at) WHERE (lease_expires_at IS NOT NULL);

CREATE INDEX request_line ON leasehold.workflow_execution_queue USING btree (workspace_id, rank, created_at, id) WHERE (due AND (execution_id IS NULL));

CREATE UNIQUE INDEX request_list ON leasehold.workflow_execution_queue USING btree (workspace_id, id);

CREATE INDEX request_not_due ON leasehold.workflow_execution_queue USING btree (run_at) WHERE (NOT due);

CREATE UNIQUE INDEX request_one_live_redrive ON leasehold.workflow_execution_queue USING btree (live_redrive_of) WHERE (live_redrive_of IS NOT NULL);

CREATE INDEX request_redrivable ON leasehold.workflow_execution_queue USING btree (workspace_id, id) WHERE ((failure_reason IS NOT NULL) AND (NOT redriven));

CREATE INDEX workflow_definition_list ON leasehold.workflow_definition USING btree (workspace_id, id) WHERE (deleted_at IS NULL);

CREATE UNIQUE INDEX workflow_definition_name ON leasehold.workflow_definition USING btree (workspace_id, name) WHERE (deleted_at IS NULL);

CREATE UNIQUE INDEX workspace_name ON leasehold.workspace USING btree (name) WHERE (deleted_at IS NULL);

CREATE INDEX workspace_turn_ready ON leasehold.workspace_turn USING btree (turn, workspace_id) WHERE ready;

ALTER INDEX leasehold.request_event_pkey ATTACH PARTITION leasehold.request_event_0_pkey;

ALTER INDEX leasehold.request_event_commit ATTACH PARTITION leasehold.request_event_0_xid_id_idx;

ALTER INDEX leasehold.request_event_pkey ATTACH PARTITION leasehold.request_event_1_pkey;

ALTER INDEX leasehold.request_event_commit ATTACH PARTITION leasehold.request_event_1_xid_id_idx;

CREATE TRIGGER execution_identity BEFORE UPDATE ON leasehold.workflow_execution FOR EACH ROW WHEN (((old.id <> new.id) OR (old.workspace_id <> new.workspace_id) OR (old.request_id <> new.request_id))) EXECUTE FUNCTION leasehold.leasehold_refuse('execution_identity');

CREATE TRIGGER execution_takes_slot AFTER INSERT ON leasehold.workflow_execution REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION leasehold.leasehold_execution_inserted();

CREATE TRIGGER execution_takes_slot_again AFTER UPDATE ON leasehold.workflow_execution FOR EACH ROW WHEN (((new.status = 'RUNNING'::text) AND ((old.status <> 'RUNNING'::text) OR (new.admission <> old.admission)))) EXECUTE FUNCTION leasehold.leasehold_execution_updated();

CREATE TRIGGER request_is_valid BEFORE INSERT OR UPDATE ON leasehold.workflow_execution_queue FOR EACH ROW EXECUTE FUNCTION leasehold.leasehold_check_request();

CREATE TRIGGER request_key_is_free AFTER INSERT ON leasehold.workflow_execution_queue FOR EACH ROW WHEN ((new.idempotency_key IS NOT NULL)) EXECUTE FUNCTION leasehold.leasehold_check_kept_key();

CREATE TRIGGER shedlock_first_token BEFORE INSERT ON leasehold.shedlock FOR EACH ROW EXECUTE FUNCTION leasehold.leasehold_shedlock_token();

CREATE TRIGGER shedlock_token BEFORE UPDATE ON leasehold.shedlock FOR EACH ROW WHEN (((new.fencing_token = old.fencing_token) AND ((old.locked_at IS DISTINCT FROM new.locked_at) OR ((old.locked_by)::text IS DISTINCT FROM (new.locked_by)::text)))) EXECUTE FUNCTION leasehold.leasehold_shedlock_token();

CREATE TRIGGER shedlock_token_rises BEFORE UPDATE ON leasehold.shedlock FOR EACH ROW WHEN ((new.fencing_token < old.fencing_token)) EXECUTE FUNCTION leasehold.leasehold_refuse('shedlock_token_rises');

CREATE TRIGGER workflow_definition_version_is_immutable BEFORE UPDATE ON leasehold.workflow_definition_version FOR EACH ROW EXECUTE FUNCTION leasehold.leasehold_refuse('workflow_definition_version_is_immutable');

CREATE TRIGGER workspace_insert_turn AFTER INSERT ON leasehold.workspace FOR EACH ROW EXECUTE FUNCTION leasehold.leasehold_workspace_sync_turn();

CREATE TRIGGER workspace_is_kept BEFORE DELETE ON leasehold.workspace FOR EACH ROW EXECUTE FUNCTION leasehold.leasehold_refuse('workspace_is_kept');

CREATE TRIGGER workspace_turn_is_kept BEFORE DELETE ON leasehold.workspace_turn FOR EACH ROW EXECUTE FUNCTION leasehold.leasehold_refuse('workspace_turn_is_kept');

CREATE TRIGGER workspace_turn_limit BEFORE UPDATE ON leasehold.workspace_turn FOR EACH ROW WHEN (((old.concurrency_limit <> new.concurrency_limit) OR (old.paused <> new.paused) OR (old.deleted <> new.deleted))) EXECUTE FUNCTION leasehold.leasehold_workspace_turn_limit();

CREATE TRIGGER workspace_turn_once BEFORE INSERT ON leasehold.workspace_turn FOR EACH ROW EXECUTE FUNCTION leasehold.leasehold_workspace_turn_once();

CREATE TRIGGER workspace_turn_shortcuts BEFORE UPDATE ON leasehold.workspace_turn FOR EACH ROW WHEN (((new.oldest_admission > old.oldest_admission) OR (new.stragglers <> old.stragglers) OR (new.held_at_most < old.held_at_most))) EXECUTE FUNCTION leasehold.leasehold_check_shortcuts();

CREATE TRIGGER workspace_turn_stays BEFORE UPDATE ON leasehold.workspace_turn FOR EACH ROW WHEN ((old.workspace_id <> new.workspace_id)) EXECUTE FUNCTION leasehold.leasehold_refuse('workspace_turn_once');

CREATE TRIGGER workspace_update_turn AFTER UPDATE ON leasehold.workspace FOR EACH ROW WHEN (((old.concurrency_limit IS DISTINCT FROM new.concurrency_limit) OR (old.paused IS DISTINCT FROM new.paused) OR (old.deleted_at IS DISTINCT FROM new.deleted_at))) EXECUTE FUNCTION leasehold.leasehold_workspace_sync_turn();

ALTER TABLE ONLY leasehold.api_key
    ADD CONSTRAINT api_key_of_workspace FOREIGN KEY (workspace_id) REFERENCES leasehold.workspace(id);

ALTER TABLE ONLY leasehold.execution_graph
    ADD CONSTRAINT execution_graph_execution FOREIGN KEY (execution_id) REFERENCES leasehold.workflow_execution(id) ON DELETE CASCADE;

ALTER TABLE ONLY leasehold.execution_node
    ADD CONSTRAINT execution_node_graph FOREIGN KEY (execution_id) REFERENCES leasehold.execution_graph(execution_id) ON DELETE CASCADE;

ALTER TABLE ONLY leasehold.workflow_execution
    ADD CONSTRAINT execution_request FOREIGN KEY (workspace_id, request_id) REFERENCES leasehold.workflow_execution_queue(workspace_id, id) ON DELETE CASCADE;

ALTER TABLE ONLY leasehold.queue
    ADD CONSTRAINT queue_owner FOREIGN KEY (owner_id) REFERENCES leasehold.workspace(id);

ALTER TABLE ONLY leasehold.queue_share
    ADD CONSTRAINT queue_share_queue FOREIGN KEY (queue_id) REFERENCES leasehold.queue(id);

ALTER TABLE ONLY leasehold.queue_share
    ADD CONSTRAINT queue_share_workspace FOREIGN KEY (workspace_id) REFERENCES leasehold.workspace(id);

ALTER TABLE ONLY leasehold.workflow_definition_version
    ADD CONSTRAINT workflow_definition_version_definition FOREIGN KEY (definition_id) REFERENCES leasehold.workflow_definition(id);

ALTER TABLE ONLY leasehold.workflow_definition
    ADD CONSTRAINT workflow_definition_workspace FOREIGN KEY (workspace_id) REFERENCES leasehold.workspace(id);

ALTER TABLE ONLY leasehold.workspace_catalog
    ADD CONSTRAINT workspace_catalog_workspace FOREIGN KEY (workspace_id) REFERENCES leasehold.workspace(id);
