-- Requeues jobs whose lease expired, or fails them if their attempts are used up.
-- release: 1
-- A failed node is written to node_spent, from where its graph is ended. Skips locked pages, and entries whose note or key is locked: claims call
-- this, and must not wait for the row of another job. A later call handles them.
-- p_xid_offset: the job_xid_offset of the epoch.
-- The caller guarantees that no page expires at or before p_from.
CREATE OR REPLACE FUNCTION {schema}.leasehold_job_expire(p_now timestamptz, p_from timestamptz, p_limit integer, p_xid_offset bigint)
RETURNS TABLE (id bigint, token bigint, queue text, worker text, status text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := coalesce(p_now, clock_timestamp());
BEGIN
    RETURN QUERY
    WITH page AS MATERIALIZED (
        SELECT l.* FROM {schema}.job_lease l
        WHERE l.expires_at > p_from AND l.expires_at <= moment
        ORDER BY l.expires_at LIMIT p_limit FOR UPDATE SKIP LOCKED
    ), held AS MATERIALIZED (
        SELECT p.token, p.queue_id, p.worker, p.groups IS NOT NULL AS grouped, e.id, e.ends, e.attempt, e.name, e.ordinal,
            e.ends <= moment AND row_number() OVER (ORDER BY e.ends, e.id) <= p_limit AS over
        FROM page p CROSS JOIN unnest(p.ids, p.ends, p.attempts, p.groups) WITH ORDINALITY AS e (id, ends, attempt, name, ordinal)
    ), note AS MATERIALIZED (
        SELECT n.job_id FROM {schema}.job_note n WHERE n.job_id = ANY (ARRAY(SELECT h.id FROM held h WHERE h.over)) FOR UPDATE SKIP LOCKED
    ), key AS MATERIALIZED (
        SELECT k.job_id FROM {schema}.job_key k WHERE k.job_id = ANY (ARRAY(SELECT h.id FROM held h WHERE h.over)) FOR UPDATE SKIP LOCKED
    ), busy AS MATERIALIZED (
        SELECT n.job_id AS id FROM {schema}.job_note n
        WHERE n.job_id = ANY (ARRAY(SELECT h.id FROM held h WHERE h.over)) AND NOT EXISTS (SELECT FROM note o WHERE o.job_id = n.job_id)
        UNION ALL
        SELECT k.job_id FROM {schema}.job_key k
        WHERE k.job_id = ANY (ARRAY(SELECT h.id FROM held h WHERE h.over)) AND NOT EXISTS (SELECT FROM key o WHERE o.job_id = k.job_id)
    ), entry AS MATERIALIZED (
        SELECT h.token, h.queue_id, h.worker, h.grouped, h.id, h.ends, h.attempt, h.name, h.ordinal,
            h.over AND NOT EXISTS (SELECT FROM busy b WHERE b.id = h.id) AS over
        FROM held h
    ), rest AS (
        SELECT e.token, min(e.ends) AS expires_at, count(*)::integer AS entries, array_agg(e.id ORDER BY e.ordinal) AS ids,
            array_agg(e.ends ORDER BY e.ordinal) AS ends, array_agg(e.attempt ORDER BY e.ordinal) AS attempts,
            CASE WHEN bool_or(e.grouped) THEN array_agg(e.name ORDER BY e.ordinal) END AS groups
        FROM entry e WHERE NOT e.over GROUP BY e.token
    ), kept AS (
        UPDATE {schema}.job_lease l
        SET expires_at = r.expires_at, entries = r.entries, ids = r.ids, ends = r.ends, attempts = r.attempts, groups = r.groups
        FROM rest r WHERE l.token = r.token
    ), gone AS (
        DELETE FROM {schema}.job_lease l USING page p
        WHERE l.token = p.token AND NOT EXISTS (SELECT FROM rest r WHERE r.token = p.token)
    ), expired AS MATERIALIZED (
        SELECT e.token, e.queue_id, e.worker, e.id, e.attempt, e.name AS group_name, q.group_limit, j.priority, j.created_at, j.execution_id, j.node, q.name,
            left('the lease of ' || e.worker || ' expired', 4000) AS error,
            e.attempt >= coalesce(j.max_attempts, q.max_attempts) AS exhausted
        FROM entry e JOIN {schema}.job j ON j.id = e.id JOIN {schema}.queue q ON q.id = e.queue_id
        WHERE e.over
    ), freed AS (
        INSERT INTO {schema}.job_group_end (queue_id, ended, xid, job_id, group_name)
        SELECT x.queue_id, count(*), (pg_current_xact_id()::text::bigint + p_xid_offset)::text::xid8, min(x.id), coalesce(x.group_name, '')
        FROM expired x WHERE x.group_limit IS NOT NULL GROUP BY x.queue_id, coalesce(x.group_name, '') ORDER BY min(x.id)
    ), failed AS (
        INSERT INTO {schema}.job_end (id, finished_at, token, attempts, status, last_error)
        SELECT x.id, moment, x.token, x.attempt, 'failed', x.error FROM expired x WHERE x.exhausted
    ), spent AS (
        INSERT INTO {schema}.node_spent (execution_id, node, attempts, error)
        SELECT x.execution_id, x.node, x.attempt, x.error FROM expired x WHERE x.exhausted AND x.execution_id IS NOT NULL
        ON CONFLICT DO NOTHING
    ), unkeyed AS (
        DELETE FROM {schema}.job_key k USING expired x WHERE x.exhausted AND k.job_id = x.id AND k.holds_until IS NULL
    ), unnoted AS (
        DELETE FROM {schema}.job_note n USING expired x WHERE x.exhausted AND n.job_id = x.id
    ), requeued AS (
        INSERT INTO {schema}.job_waiting (job_id, created_at, run_at, token, queue_id, attempts, priority, ready, group_name, xid)
        SELECT x.id, x.created_at, moment, x.token, x.queue_id, x.attempt, x.priority, true, nullif(x.group_name, ''),
            CASE WHEN x.group_name <> '' THEN (pg_current_xact_id()::text::bigint + p_xid_offset)::text::xid8 END
        FROM expired x WHERE NOT x.exhausted
    ), noted AS (
        INSERT INTO {schema}.job_note (job_id, last_error) SELECT x.id, x.error FROM expired x WHERE NOT x.exhausted
        ON CONFLICT (job_id) DO UPDATE SET last_error = excluded.last_error
    )
    SELECT x.id, x.token, x.name, x.worker, CASE WHEN x.exhausted THEN 'failed' ELSE 'queued' END FROM expired x;
END
$$
