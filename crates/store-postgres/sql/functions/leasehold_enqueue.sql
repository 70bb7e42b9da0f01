-- Enqueues a request within the caller's transaction and returns its id; a public function.
-- release: 1
-- Returns the id of a new request, or of the one that holds the idempotency key with the same definition and params; that one may have been
-- pruned.
-- Fails with no_data_found (no such workspace or definition), insufficient_privilege (definition of another workspace),
-- object_not_in_prerequisite_state (no version published), unique_violation (key held with other params),
-- configuration_limit_exceeded (a quota of the workspace), feature_not_supported (the version has a params schema, which this function
-- cannot check, and the option schema_checked is not true) or invalid_parameter_value (unknown option).
CREATE OR REPLACE FUNCTION {schema}.leasehold_enqueue(
    workspace_id uuid,
    definition_id uuid,
    params jsonb DEFAULT 'null',
    priority integer DEFAULT 0,
    run_at timestamptz DEFAULT NULL,
    idempotency_key text DEFAULT NULL,
    dedupe_window interval DEFAULT NULL,
    trace_context text DEFAULT NULL,
    enqueued_by text DEFAULT 'sql',
    options jsonb DEFAULT NULL
) RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    definition {schema}.workflow_definition;
    request {schema}.workflow_execution_queue;
    kept {schema}.kept_key;
    requested_key ALIAS FOR idempotency_key;
    moment timestamptz := clock_timestamp();
    size integer;
BEGIN
    IF leasehold_enqueue.options IS NOT NULL THEN
        PERFORM {schema}.leasehold_check_options('leasehold_enqueue'::text, leasehold_enqueue.options, '{schema_checked}'::text[]);
        IF jsonb_typeof(leasehold_enqueue.options -> 'schema_checked'::text) <> 'boolean'::text THEN
            RAISE EXCEPTION 'leasehold_enqueue: option schema_checked must be true or false' USING ERRCODE = 'invalid_parameter_value';
        END IF;
    END IF;
    IF pg_postmaster_start_time() IS DISTINCT FROM (
        SELECT e.server_started_at FROM {schema}.epoch e ORDER BY e.number DESC, e.opened_at DESC, e.id DESC LIMIT 1)
    THEN
        PERFORM {schema}.leasehold_check_epoch();
    END IF;
    PERFORM 1 FROM {schema}.workspace w WHERE w.id = leasehold_enqueue.workspace_id AND w.deleted_at IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'workspace % not found', leasehold_enqueue.workspace_id USING ERRCODE = 'no_data_found';
    END IF;
    SELECT d.* INTO definition FROM {schema}.workflow_definition d
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
        SELECT FROM {schema}.workflow_definition_version v WHERE v.id = definition.current_version_id AND v.params_schema IS NOT NULL)
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
    IF NOT {schema}.leasehold_is_readable(leasehold_enqueue.params) THEN
        RAISE EXCEPTION 'params must not be nested deeper than 64 levels, nor contain numbers beyond 1.7e308'
            USING ERRCODE = 'program_limit_exceeded';
    END IF;
    IF requested_key IS NOT NULL THEN
        UPDATE {schema}.workflow_execution_queue q SET idempotency_key = NULL, dedupe_until = NULL
        WHERE q.workspace_id = leasehold_enqueue.workspace_id AND q.idempotency_key = requested_key AND q.dedupe_until <= moment;
        SELECT k.* INTO kept FROM {schema}.kept_key k
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
        SELECT FROM {schema}.workflow_execution_queue q
        WHERE q.workspace_id = leasehold_enqueue.workspace_id AND q.idempotency_key = requested_key)
    THEN
        PERFORM {schema}.leasehold_check_quota(leasehold_enqueue.workspace_id, size::bigint, moment);
    END IF;
    INSERT INTO {schema}.workflow_execution_queue AS q
        (id, workspace_id, definition_id, version_id, priority, due, run_at, created_at, params, idempotency_key,
        dedupe_until, trace_context, bytes)
    VALUES ({schema}.leasehold_uuid7(), leasehold_enqueue.workspace_id, definition.id, definition.current_version_id,
        leasehold_enqueue.priority, coalesce(leasehold_enqueue.run_at, moment) <= moment,
        coalesce(leasehold_enqueue.run_at, moment), moment, coalesce(leasehold_enqueue.params, 'null'), requested_key,
        moment + leasehold_enqueue.dedupe_window, left(leasehold_enqueue.trace_context, 1024), size)
    ON CONFLICT (workspace_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
    RETURNING q.* INTO request;
    IF FOUND THEN
        INSERT INTO {schema}.request_event (request_id, workspace_id, to_status, at, rank, line_at, by_whom, bytes)
        VALUES (request.id, request.workspace_id, 'PENDING', moment, CASE WHEN request.due THEN request.rank END,
            CASE WHEN request.due THEN request.created_at END, leasehold_enqueue.enqueued_by, size);
        PERFORM {schema}.leasehold_notify();
        RETURN request.id;
    END IF;
    SELECT q.* INTO request FROM {schema}.workflow_execution_queue q
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
$$
