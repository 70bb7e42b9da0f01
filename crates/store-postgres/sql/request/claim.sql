-- Admits up to $2 requests: at most $9 kept executions first, then workspaces in turn. Always returns at least one row; see the last SELECT.
WITH clock AS MATERIALIZED (
    -- Tokens of the epoch are higher than any of the lost part of a history.
    SELECT coalesce($1::timestamptz, statement_timestamp()) AS now, coalesce((
        SELECT e.token_base FROM {schema}.epoch e WHERE e.server_started_at = pg_postmaster_start_time() ORDER BY e.number DESC LIMIT 1
    ), 0) AS token_base
), fence AS MATERIALIZED (
    SELECT locked_by, fencing_token, lock_until FROM {schema}.shedlock WHERE name = $6
    FOR SHARE SKIP LOCKED
), allowed AS MATERIALIZED (
    -- While another transaction has locked the row, no instance can acquire the lock, so the last holder still holds it.
    SELECT $6::text IS NULL OR CASE WHEN EXISTS (SELECT 1 FROM fence)
        THEN EXISTS (SELECT 1 FROM fence WHERE locked_by = $7 AND fencing_token = $8 AND lock_until > timezone('utc', clock.now))
        ELSE EXISTS (SELECT 1 FROM {schema}.shedlock WHERE name = $6 AND locked_by = $7 AND fencing_token = $8)
    END AS ok
    FROM clock
), kept AS MATERIALIZED (
    -- Takes others instead of those whose request or execution is locked.
    SELECT q.ctid AS tid, q.execution_id, q.created_at, q.id
    FROM {schema}.workflow_execution_queue q CROSS JOIN LATERAL (
        SELECT 1 FROM {schema}.workflow_execution e WHERE e.id = q.execution_id AND e.finished_at IS NULL
        LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
    ) e
    WHERE q.due AND q.execution_id IS NOT NULL AND (SELECT ok FROM allowed)
    ORDER BY q.created_at, q.id LIMIT $9
    FOR UPDATE OF q SKIP LOCKED
), resumed AS (
    UPDATE {schema}.workflow_execution SET started_at = (SELECT now FROM clock), error = NULL
    WHERE id = ANY (ARRAY(SELECT execution_id FROM kept))
), wanted AS MATERIALIZED (
    SELECT $2 - count(*) AS n FROM kept
), fold AS MATERIALIZED (
    SELECT round_from, parked FROM {schema}.request_fold ORDER BY id DESC LIMIT 1
), locked AS MATERIALIZED (
    SELECT ctid AS tid, * FROM {schema}.workspace_turn
    WHERE ready AND (SELECT ok FROM allowed)
        AND turn >= (SELECT round_from FROM fold)
        AND NOT (workspace_id = ANY ((SELECT parked FROM fold)::uuid[]))
    ORDER BY turn, workspace_id LIMIT (SELECT n FROM wanted)
    FOR UPDATE SKIP LOCKED
), fresh AS (
    SELECT *, ((SELECT n FROM wanted) + count(*) OVER () - 1) / count(*) OVER () AS share
    FROM locked WHERE pg_visible_in_snapshot(written_by, pg_current_snapshot())
), room AS (
    SELECT f.tid, f.workspace_id, f.turn, f.deleted, f.concurrency_limit, f.oldest_admission, f.stragglers,
        f.line_rank, f.line_at, f.line_id, f.counted, r.alive,
        CASE WHEN f.counted THEN cardinality(r.alive) ELSE f.held_at_most END AS running,
        CASE WHEN f.deleted OR NOT f.counted THEN f.share
            ELSE greatest(0, least(f.share, f.concurrency_limit - cardinality(r.alive))) END AS want
    FROM (SELECT *, held_at_most + share >= concurrency_limit AS counted FROM fresh) f CROSS JOIN LATERAL (
        SELECT ARRAY(
            SELECT e.admission FROM unnest(f.stragglers) AS s (admission) CROSS JOIN LATERAL (
                SELECT e.admission FROM {schema}.workflow_execution e
                WHERE f.counted AND e.workspace_id = f.workspace_id AND e.status = 'RUNNING'
                    AND e.admission = s.admission
                LIMIT 1
            ) e
            UNION ALL
            SELECT e.admission FROM {schema}.workflow_execution e
            WHERE f.counted AND e.workspace_id = f.workspace_id AND e.status = 'RUNNING'
                AND e.admission >= f.oldest_admission
            ORDER BY 1
        ) AS alive
        -- OFFSET 0 keeps the planner from repeating the count wherever it is used.
        OFFSET 0
    ) r
), line AS MATERIALIZED (
    SELECT r.*, l.*,
        row_number() OVER (PARTITION BY r.workspace_id ORDER BY l.rank, l.created_at, l.id) AS position
    FROM room r LEFT JOIN LATERAL (
        SELECT q.ctid AS request_tid, q.id, q.rank, q.created_at, q.definition_id, q.version_id
        FROM {schema}.workflow_execution_queue q
        WHERE q.workspace_id = r.workspace_id AND q.due AND q.execution_id IS NULL
            AND (q.rank, q.created_at, q.id) >= (r.line_rank, r.line_at, r.line_id)
        ORDER BY q.rank, q.created_at, q.id
        -- One more than wanted tells whether there are more.
        LIMIT CASE WHEN r.want > 0 THEN r.want + 1 ELSE 0 END
    ) l ON true
), picked AS MATERIALIZED (
    SELECT l.* FROM line l JOIN {schema}.workflow_execution_queue q ON q.ctid = l.request_tid
    WHERE l.position <= l.want AND q.due AND q.execution_id IS NULL
    FOR UPDATE OF q SKIP LOCKED
), blocked AS MATERIALIZED (
    -- Workspaces with a locked request among the first of their line. The counts save comparing the rows if there is none.
    SELECT DISTINCT ON (l.workspace_id) l.tid, l.workspace_id, l.turn, l.deleted, l.concurrency_limit, l.oldest_admission, l.stragglers,
        l.line_rank, l.line_at, l.line_id, l.counted, l.alive, l.running, l.want
    FROM line l
    WHERE l.position <= l.want AND l.id IS NOT NULL
        AND (SELECT count(*) FROM picked) < (SELECT count(*) FROM line WHERE position <= want AND id IS NOT NULL)
        AND NOT EXISTS (SELECT 1 FROM picked p WHERE p.id = l.id)
), free AS MATERIALIZED (
    -- The first requests of these workspaces that are not locked. The gap in the positions keeps the start of the line before the locked ones.
    SELECT b.*, l.*,
        1000000 + row_number() OVER (PARTITION BY b.workspace_id ORDER BY l.rank, l.created_at, l.id) AS position
    FROM blocked b CROSS JOIN LATERAL (
        SELECT q.ctid AS request_tid, q.id, q.rank, q.created_at, q.definition_id, q.version_id
        FROM {schema}.workflow_execution_queue q
        WHERE q.workspace_id = b.workspace_id AND q.due AND q.execution_id IS NULL
            AND (q.rank, q.created_at, q.id) >= (b.line_rank, b.line_at, b.line_id)
        ORDER BY q.rank, q.created_at, q.id LIMIT b.want
        FOR UPDATE OF q SKIP LOCKED
    ) l
), numbered AS MATERIALIZED (
    SELECT p.*, nextval('{schema}.admission_number') AS admission, ($5::uuid[])[p.ordinal] AS execution_id
    FROM (
        SELECT p.*, row_number() OVER (ORDER BY p.position, p.turn, p.workspace_id) AS ordinal,
            CASE WHEN p.deleted THEN 'workspace_not_found'
                WHEN (SELECT d.id FROM {schema}.workflow_definition d
                    WHERE d.id = p.definition_id AND d.deleted_at IS NULL) IS NULL THEN 'definition_not_found'
                WHEN (SELECT v.id FROM {schema}.workflow_definition_version v
                    WHERE v.id = p.version_id) IS NULL THEN 'version_not_found' END AS refusal
        FROM (
            SELECT p.* FROM picked p WHERE p.workspace_id NOT IN (SELECT b.workspace_id FROM blocked b)
            UNION ALL
            SELECT f.* FROM free f
        ) p
        ORDER BY p.position, p.turn, p.workspace_id
        LIMIT (SELECT n FROM wanted)
    ) p
), claimed AS (
    UPDATE {schema}.workflow_execution_queue q
    SET status = CASE WHEN c.refusal IS NULL THEN 'CLAIMED' ELSE 'FAILED' END,
        due = NULL,
        claim_token = greatest(q.claim_token, clock.token_base) + 1,
        execution_id = CASE WHEN c.refusal IS NULL THEN c.execution_id END,
        claimed_at = CASE WHEN c.refusal IS NULL THEN clock.now END,
        claimed_by = CASE WHEN c.refusal IS NULL THEN $3 END,
        lease_expires_at = CASE WHEN c.refusal IS NULL THEN clock.now + $4::bigint::double precision * interval '1 microsecond' END,
        failure_reason = c.refusal,
        finished_at = CASE WHEN c.refusal IS NOT NULL THEN clock.now END,
        live_redrive_of = CASE WHEN c.refusal IS NULL THEN q.live_redrive_of END,
        attempt_count = q.attempt_count + (c.refusal IS NOT NULL)::integer
    FROM (
        SELECT tid, execution_id, row_number() OVER (ORDER BY created_at, id) AS position, NULL AS refusal, true AS kept
        FROM kept
        UNION ALL
        SELECT request_tid, execution_id, ordinal, refusal, false FROM numbered
    ) c, clock
    WHERE q.ctid = c.tid
    RETURNING q.*, c.kept, c.position
), admitted AS (
    INSERT INTO {schema}.workflow_execution
        (id, workspace_id, request_id, definition_id, version_id, status, admission, started_at)
    SELECT n.execution_id, n.workspace_id, n.id, n.definition_id, n.version_id, 'RUNNING', n.admission, clock.now
    FROM numbered n, clock WHERE n.refusal IS NULL
), logged AS (
    INSERT INTO {schema}.request_event (request_id, workspace_id, from_status, to_status, at, by_whom, reason, bytes)
    SELECT c.id, c.workspace_id, 'PENDING', c.status, clock.now, $3, c.failure_reason,
        CASE WHEN c.failure_reason IS NOT NULL THEN -(c.bytes + coalesce(c.execution_bytes, 0)) END
    FROM claimed c, clock
), outcome AS (
    SELECT tid, turn, deleted, concurrency_limit, oldest_admission, stragglers, line_rank, line_at, line_id, counted,
        alive, running, want,
        max(admission) AS last_admission,
        count(admission) FILTER (WHERE refusal IS NULL) AS admitted,
        count(admission) AS taken,
        count(id) FILTER (WHERE admission IS NULL) AS seen,
        -- Positions begin at 1. Unless another transaction locked a row in between, the claimed requests are the first.
        CASE WHEN coalesce(max(position) FILTER (WHERE admission IS NOT NULL), 0) = count(admission)
            THEN least(count(admission) + 1, count(id) FILTER (WHERE admission IS NULL)) END AS next,
        array_agg(rank ORDER BY position) FILTER (WHERE admission IS NULL) AS ranks,
        array_agg(created_at ORDER BY position) FILTER (WHERE admission IS NULL) AS times,
        array_agg(id ORDER BY position) FILTER (WHERE admission IS NULL) AS ids
    FROM (
        SELECT tid, turn, deleted, concurrency_limit, oldest_admission, stragglers, line_rank, line_at, line_id, counted,
            alive, running, want, position, rank, created_at, id, NULL::bigint AS admission, NULL AS refusal
        FROM line
        UNION ALL
        SELECT tid, turn, deleted, concurrency_limit, oldest_admission, stragglers, line_rank, line_at, line_id, counted,
            alive, running, want, position, rank, created_at, id, admission, refusal
        FROM numbered
    ) s
    GROUP BY tid, turn, deleted, concurrency_limit, oldest_admission, stragglers, line_rank, line_at, line_id, counted,
        alive, running, want
), turned AS (
    UPDATE {schema}.workspace_turn t
    -- A workspace whose requests are all locked by other transactions also ends its turn; otherwise it would block the round.
    SET turn = coalesce(o.last_admission,
            CASE WHEN o.want > 0 AND o.seen > 0 THEN nextval('{schema}.admission_number') END, o.turn),
        has_work = o.more_work,
        has_room = o.more_room,
        ready = o.more_work AND o.more_room,
        oldest_admission = CASE WHEN o.strides THEN o.stride_to ELSE o.oldest_admission END,
        stragglers = CASE WHEN o.strides THEN ARRAY(SELECT a FROM unnest(o.alive) a WHERE a < o.stride_to)
            ELSE o.stragglers END,
        line_rank = coalesce(o.ranks[o.next], o.line_rank),
        line_at = coalesce(o.times[o.next], o.line_at),
        line_id = coalesce(o.ids[o.next], o.line_id),
        written_by = pg_current_xact_id()
    FROM (
        SELECT *, want = 0 OR taken < seen AS more_work,
            -- Uncounted: held_at_most is an upper bound, so there may be room.
            deleted OR NOT counted OR running + admitted < concurrency_limit AS more_room,
            -- Moving oldest_admission costs a trigger check, so it moves in strides: to the last turn, leaving at most
            -- 100 stragglers behind.
            coalesce(alive[101], turn) AS stride_to,
            counted AND coalesce(alive[101], turn) - oldest_admission > 1000 AS strides
        FROM outcome
    ) o
    WHERE t.ctid = o.tid
    RETURNING t.workspace_id, o.concurrency_limit, o.running + o.admitted AS active,
        o.taken < o.seen AND o.admitted > 0 AND NOT o.more_room AS filled
), at_capacity AS (
    SELECT array_agg(workspace_id) AS workspaces, array_agg(active) AS active, array_agg(concurrency_limit) AS limits
    FROM turned WHERE filled
)
SELECT (SELECT ok FROM allowed) AS lock_held,
    -- Looks for one only if this claim takes all others. A scalar subquery, which the planner cannot turn into a scan of all executions.
    (SELECT count(*) FROM (
        SELECT 1 FROM {schema}.workflow_execution_queue q
        WHERE q.due AND q.execution_id IS NOT NULL AND (SELECT count(*) FROM kept) < $9 AND (SELECT ok FROM allowed) AND (
            SELECT e.id FROM {schema}.workflow_execution e WHERE e.id = q.execution_id AND e.finished_at IS NULL) IS NULL
        LIMIT 1) l) AS lost_executions,
    (SELECT count(*) FROM locked) AS examined,
    (SELECT count(*) FROM outcome WHERE want > 0 AND seen > 0 AND taken = 0) AS stuck,
    c.id, c.workspace_id, c.definition_id, c.version_id, c.execution_id, c.claim_token, c.kept, c.priority, c.params,
    c.attempt_count, c.dispatch_failures, c.cancel_requested_at IS NOT NULL AS cancel_requested, c.trace_context,
    c.crashes, c.crashes_alone,
    c.created_at, c.run_at, c.lease_expires_at, c.failure_reason,
    f.workspaces AS full_workspaces, f.active AS full_active, f.limits AS full_limits
FROM (SELECT 1) one LEFT JOIN claimed c ON true
-- The workspaces at capacity are returned once, in the first row.
LEFT JOIN at_capacity f ON NOT c.kept AND c.position = 1
ORDER BY c.kept DESC, c.position
