-- Inserts requests, all or none. Returns the first problem or the inserted ids; a request whose key is held is not inserted. The transaction waits
-- at most 50 ms for a lock, such as that of a key of an open transaction or of a table that grows; its caller tries again without a connection.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::timestamptz, clock_timestamp()) AS now, set_config('lock_timeout', '50ms', true) AS limited
), requested AS MATERIALIZED (
    SELECT a.*, d.id AS known_id, d.workspace_id AS owner_id, d.current_version_id
    FROM unnest($4::uuid[], $5::uuid[], $6::jsonb[], $7::smallint[], $8::timestamptz[], $9::text[], $10::bigint[], $11::text[],
        $12::uuid[], $13::integer[])
        WITH ORDINALITY AS a (id, definition_id, params, priority, run_at, key, dedupe_window, trace_context, checked, bytes, ordinal)
    LEFT JOIN {schema}.workflow_definition d ON d.id = a.definition_id AND d.deleted_at IS NULL
), problem AS MATERIALIZED (
    SELECT 'workspace_not_found' AS problem, NULL::uuid AS definition_id
    WHERE NOT EXISTS (SELECT 1 FROM {schema}.workspace WHERE id = $2 AND deleted_at IS NULL)
    UNION ALL
    (SELECT CASE WHEN known_id IS NULL THEN 'definition_not_found'
            WHEN owner_id <> $2 THEN 'definition_forbidden'
            WHEN current_version_id IS NULL THEN 'not_published'
            ELSE 'version_moved' END, definition_id
    FROM requested
    WHERE known_id IS NULL OR owner_id <> $2 OR current_version_id IS NULL OR checked <> current_version_id
    ORDER BY ordinal LIMIT 1)
    LIMIT 1
), inserted AS (
    INSERT INTO {schema}.workflow_execution_queue
        (id, workspace_id, definition_id, version_id, priority, due, run_at, created_at, params, idempotency_key,
        dedupe_until, trace_context, bytes)
    SELECT a.id, $2, a.definition_id, a.current_version_id, a.priority, coalesce(a.run_at, clock.now) <= clock.now,
        coalesce(a.run_at, clock.now), clock.now, a.params, a.key,
        clock.now + a.dedupe_window::double precision * interval '1 microsecond', a.trace_context, a.bytes
    FROM requested a, clock
    WHERE NOT EXISTS (SELECT 1 FROM problem)
        -- A scalar subquery, which the planner cannot turn into a scan of all kept keys.
        AND (a.key IS NULL OR (
            SELECT k.request_id FROM {schema}.kept_key k
            WHERE k.workspace_id = $2 AND k.key = a.key AND k.dedupe_until > clock.now
        ) IS NULL)
    -- Ordered by key, so that concurrent calls with common keys cannot deadlock.
    ORDER BY a.key COLLATE "C" NULLS FIRST, a.ordinal
    ON CONFLICT (workspace_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
    RETURNING id, workspace_id, due, rank, created_at, bytes
), logged AS (
    INSERT INTO {schema}.request_event (request_id, workspace_id, to_status, at, rank, line_at, by_whom, bytes)
    SELECT id, workspace_id, 'PENDING', created_at, CASE WHEN due THEN rank END, CASE WHEN due THEN created_at END, $3, bytes
    FROM inserted ORDER BY id
)
SELECT problem, definition_id, NULL::uuid AS id, NULL AS notified FROM problem
UNION ALL
SELECT NULL, NULL, id, (SELECT {schema}.leasehold_notify()) FROM inserted
