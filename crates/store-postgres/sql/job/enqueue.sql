-- Inserts jobs, with the transaction number plus $16. The order of the arrays is the order of ids.
WITH given AS MATERIALIZED (
    SELECT g.*, coalesce($1::timestamptz, clock_timestamp()) AS now,
        CASE WHEN g.start_at > coalesce($1::timestamptz, clock_timestamp()) THEN g.start_at
            WHEN g.start_in_us > 0 THEN coalesce($1::timestamptz, clock_timestamp()) + g.start_in_us::double precision * interval '1 microsecond'
        END AS start
    FROM unnest($2::bigint[], $3::integer[], $4::smallint[], $5::text[], $6::json[], $7::timestamptz[], $8::bigint[],
        $9::integer[], $10::bigint[], $11::bigint[], $12::bigint[], $13::double precision[], $14::double precision[], $15::text[], $17::text[])
        AS g (id, queue_id, priority, kind, payload, start_at, start_in_us, max_attempts, timeout_us, backoff_base_us,
            backoff_max_us, backoff_factor, backoff_jitter, trace_context, group_name)
), timed AS MATERIALIZED (
    -- A job with a group has a waiting row from the start, and is in no line.
    SELECT g.*, CASE WHEN g.start IS NULL AND g.group_name IS NOT NULL THEN g.now ELSE g.start END AS run_at,
        CASE WHEN $16::bigint = 0 THEN pg_current_xact_id() ELSE (pg_current_xact_id()::text::bigint + $16::bigint)::text::xid8 END AS xid
    FROM given g
), waiting AS (
    INSERT INTO {schema}.job_waiting (job_id, created_at, run_at, queue_id, priority, ready, group_name, xid)
    SELECT g.id, g.now, g.run_at, g.queue_id, g.priority, g.start IS NULL, g.group_name, CASE WHEN g.group_name IS NOT NULL THEN g.xid END
    FROM timed g WHERE g.run_at IS NOT NULL
)
INSERT INTO {schema}.job (id, xid, created_at, run_at, queue_id, priority, kind, payload, max_attempts, timeout_us, backoff_base_us,
    backoff_max_us, backoff_factor, backoff_jitter, trace_context, group_name)
SELECT g.id, g.xid, g.now, g.run_at, g.queue_id, g.priority, g.kind, g.payload, g.max_attempts, g.timeout_us, g.backoff_base_us,
    g.backoff_max_us, g.backoff_factor, g.backoff_jitter, g.trace_context, g.group_name
FROM timed g ORDER BY g.id
