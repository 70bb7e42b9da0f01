-- Inserts one job that runs at once, with the transaction number plus $14, and notifies waiting workers. Inserts nothing unless the queue $2 has the name $13 and a line of the priority.
INSERT INTO {schema}.job (xid, created_at, queue_id, priority, kind, payload, max_attempts, timeout_us, backoff_base_us, backoff_max_us,
    backoff_factor, backoff_jitter, trace_context)
SELECT CASE WHEN $14::bigint = 0 THEN pg_current_xact_id() ELSE (pg_current_xact_id()::text::bigint + $14::bigint)::text::xid8 END,
    coalesce($1::timestamptz, clock_timestamp()), l.queue_id, l.priority, $4::text, $5::json, $6::integer, $7::bigint, $8::bigint, $9::bigint,
    $10::double precision, $11::double precision, $12::text
FROM {schema}.job_line l WHERE l.queue_id = $2 AND l.priority = $3 AND l.queue = $13
RETURNING id, {schema}.leasehold_job_notify() AS notified
