-- Starts nodes: inserts a job, with the transaction number plus $17, and a node row for each, and notifies waiting workers. Leaves out nodes whose workspace may not use their queue.
-- Workers find a job only by its line. The start of the graph created the lines; a later failover may have lost one.
WITH given AS MATERIALIZED (
    SELECT nextval('{schema}.job_id') AS id, g.*, q.id AS queue_id,
        CASE WHEN g.start_in_us > 0 THEN $1::timestamptz + g.start_in_us::double precision * interval '1 microsecond' END AS run_at
    FROM unnest($2::uuid[], $3::smallint[], $4::text[], $5::smallint[], $6::text[], $7::json[], $8::bigint[], $9::integer[],
        $10::bigint[], $11::bigint[], $12::bigint[], $13::double precision[], $14::double precision[],
        $15::text[], $16::uuid[])
        AS g (execution_id, node, queue, priority, kind, payload, start_in_us, max_attempts, timeout_us, backoff_base_us,
            backoff_max_us, backoff_factor, backoff_jitter, trace_context, workspace_id)
    CROSS JOIN LATERAL (
        SELECT q.id FROM {schema}.queue q
        WHERE q.name = g.queue AND (q.owner_id = g.workspace_id OR q.shared_with_all OR starts_with(q.name, 'leasehold:')
            OR coalesce((SELECT true FROM {schema}.queue_share s WHERE s.queue_id = q.id AND s.workspace_id = g.workspace_id LIMIT 1), false))
        LIMIT 1
    ) q
), line AS (
    INSERT INTO {schema}.job_line (queue_id, priority, queue)
    SELECT DISTINCT g.queue_id, g.priority, g.queue FROM given g
    WHERE coalesce((SELECT false FROM {schema}.job_line l WHERE l.queue_id = g.queue_id AND l.priority = g.priority), true)
    ORDER BY g.queue_id, g.priority
    ON CONFLICT DO NOTHING
), waiting AS (
    INSERT INTO {schema}.job_waiting (job_id, created_at, run_at, queue_id, priority, ready)
    SELECT g.id, $1, g.run_at, g.queue_id, g.priority, false FROM given g WHERE g.run_at IS NOT NULL
), put_in AS (
    INSERT INTO {schema}.job (id, xid, created_at, run_at, queue_id, priority, kind, payload, max_attempts, timeout_us, backoff_base_us,
        backoff_max_us, backoff_factor, backoff_jitter, trace_context, execution_id, node)
    SELECT g.id, CASE WHEN $17::bigint = 0 THEN pg_current_xact_id() ELSE (pg_current_xact_id()::text::bigint + $17::bigint)::text::xid8 END,
        $1, g.run_at, g.queue_id, g.priority, g.kind, g.payload, g.max_attempts, g.timeout_us, g.backoff_base_us,
        g.backoff_max_us, g.backoff_factor, g.backoff_jitter, g.trace_context, g.execution_id, g.node
    FROM given g
), started_node AS (
    INSERT INTO {schema}.execution_node (execution_id, node, job_id, started_at)
    SELECT g.execution_id, g.node, g.id, $1 FROM given g
    RETURNING 1
)
SELECT count(*) AS started, {schema}.leasehold_job_notify() AS notified FROM started_node
