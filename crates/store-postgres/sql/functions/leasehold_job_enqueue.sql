-- Enqueues a job within the caller's transaction and returns its id; a public function.
-- release: 1
-- options: group, the group that the job takes turns with.
-- Returns the id of the new job, or of the job that holds the deduplication key.
CREATE OR REPLACE FUNCTION {schema}.leasehold_job_enqueue(
    queue text,
    kind text,
    payload json DEFAULT 'null',
    priority integer DEFAULT 0,
    run_at timestamptz DEFAULT NULL,
    dedup_key text DEFAULT NULL,
    dedup_window interval DEFAULT NULL,
    max_attempts integer DEFAULT NULL,
    timeout interval DEFAULT NULL,
    trace_context text DEFAULT NULL,
    options jsonb DEFAULT NULL
) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := clock_timestamp();
    in_queue integer;
    at timestamptz := CASE WHEN leasehold_job_enqueue.run_at > moment THEN leasehold_job_enqueue.run_at END;
    new_id bigint := nextval('{schema}.job_id'::regclass);
    holder bigint;
    own_xid xid8 := pg_current_xact_id();
    xid_offset bigint;
    in_group text := leasehold_job_enqueue.options ->> 'group'::text;
    is_scheduled boolean := at IS NOT NULL;
BEGIN
    IF leasehold_job_enqueue.options IS NOT NULL THEN
        PERFORM {schema}.leasehold_check_options('leasehold_job_enqueue'::text, leasehold_job_enqueue.options, ARRAY['group'::text]);
        IF jsonb_typeof(leasehold_job_enqueue.options -> 'group'::text) NOT IN ('string'::text, 'null'::text) OR octet_length(in_group) NOT BETWEEN 1 AND 128
            OR in_group ~ '[[:cntrl:]]' OR starts_with(in_group, 'workspace:'::text)
        THEN
            RAISE EXCEPTION 'group must be a string of 1 to 128 bytes without control characters, and must not start with "workspace:"'
                USING ERRCODE = 'invalid_parameter_value';
        END IF;
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
    SELECT e.job_xid_offset INTO xid_offset FROM {schema}.epoch e WHERE e.server_started_at = pg_postmaster_start_time() LIMIT 1;
    IF NOT FOUND THEN
        PERFORM {schema}.leasehold_check_epoch();
        SELECT e.job_xid_offset INTO xid_offset FROM {schema}.epoch e ORDER BY e.number DESC, e.opened_at DESC, e.id DESC LIMIT 1;
    END IF;
    SELECT q.id INTO in_queue FROM {schema}.queue q WHERE q.name = leasehold_job_enqueue.queue;
    IF NOT FOUND THEN
        INSERT INTO {schema}.queue (name) VALUES (leasehold_job_enqueue.queue) ON CONFLICT (name) DO NOTHING;
        SELECT q.id INTO in_queue FROM {schema}.queue q WHERE q.name = leasehold_job_enqueue.queue;
    END IF;
    IF NOT EXISTS (SELECT FROM {schema}.job_line l WHERE l.queue_id = in_queue AND l.priority = CASE WHEN in_group IS NULL THEN leasehold_job_enqueue.priority ELSE 32767 END) THEN
        INSERT INTO {schema}.job_line (queue_id, priority, queue)
        VALUES (in_queue, CASE WHEN in_group IS NULL THEN leasehold_job_enqueue.priority ELSE 32767 END, leasehold_job_enqueue.queue) ON CONFLICT DO NOTHING;
    END IF;
    IF leasehold_job_enqueue.dedup_key IS NOT NULL THEN
        DELETE FROM {schema}.job_key k
        WHERE k.queue_id = in_queue AND k.key = leasehold_job_enqueue.dedup_key AND k.holds_until <= moment;
        INSERT INTO {schema}.job_key AS k (queue_id, key, job_id, holds_until)
        VALUES (in_queue, leasehold_job_enqueue.dedup_key, new_id, moment + leasehold_job_enqueue.dedup_window)
        ON CONFLICT (queue_id, key) DO NOTHING;
        IF NOT FOUND THEN
            SELECT k.job_id INTO holder FROM {schema}.job_key k
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
    IF in_group IS NOT NULL AND at IS NULL THEN
        at := moment;
    END IF;
    INSERT INTO {schema}.job (id, xid, created_at, run_at, timeout_us, queue_id, max_attempts, priority, kind, payload, trace_context,
        group_name)
    VALUES (new_id, own_xid, moment, at, (extract(epoch FROM leasehold_job_enqueue.timeout) * 1000000::numeric)::bigint, in_queue,
        leasehold_job_enqueue.max_attempts, leasehold_job_enqueue.priority, leasehold_job_enqueue.kind,
        coalesce(leasehold_job_enqueue.payload, 'null'), left(leasehold_job_enqueue.trace_context, 1024), in_group);
    IF at IS NOT NULL THEN
        INSERT INTO {schema}.job_waiting (job_id, created_at, run_at, queue_id, priority, ready, group_name, xid)
        VALUES (new_id, moment, at, in_queue, leasehold_job_enqueue.priority, NOT is_scheduled, in_group,
            CASE WHEN in_group IS NOT NULL THEN own_xid END);
    END IF;
    PERFORM {schema}.leasehold_job_notify();
    RETURN new_id;
END
$$
