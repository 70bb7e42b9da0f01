-- Ends the jobs $2, in any status: deletes those that were never claimed, and fails the others with the error $3. Returns the attempts of the
-- others. $4: the offset of transaction numbers. The caller has locked their queues and pages, so their status cannot change.
WITH target AS MATERIALIZED (
    SELECT j.id, j.queue_id FROM {schema}.job j WHERE j.id = ANY ($2)
), entry AS MATERIALIZED (
    SELECT l.token, l.queue_id, l.groups IS NOT NULL AS grouped, e.id, e.ends, e.attempt, e.name, e.ordinal, e.id = ANY ($2) AS gone
    FROM {schema}.job_lease l CROSS JOIN unnest(l.ids, l.ends, l.attempts, l.groups) WITH ORDINALITY AS e (id, ends, attempt, name, ordinal)
    WHERE l.nodes AND l.queue_id = ANY (ARRAY(SELECT DISTINCT a.queue_id FROM target a)) AND l.ids && $2
), rest AS MATERIALIZED (
    SELECT e.token, min(e.ends) AS expires_at, count(*)::integer AS entries, array_agg(e.id ORDER BY e.ordinal) AS ids,
        array_agg(e.ends ORDER BY e.ordinal) AS ends, array_agg(e.attempt ORDER BY e.ordinal) AS attempts,
        CASE WHEN bool_or(e.grouped) THEN array_agg(e.name ORDER BY e.ordinal) END AS groups
    FROM entry e WHERE NOT e.gone GROUP BY e.token
), kept AS (
    UPDATE {schema}.job_lease l SET expires_at = r.expires_at, entries = r.entries, ids = r.ids, ends = r.ends, attempts = r.attempts, groups = r.groups
    FROM rest r WHERE l.token = r.token
), freed AS (
    INSERT INTO {schema}.job_group_end (queue_id, ended, xid, job_id, group_name)
    SELECT e.queue_id, count(*), (pg_current_xact_id()::text::bigint + $4::bigint)::text::xid8, min(e.id), coalesce(e.name, '')
    FROM entry e JOIN {schema}.queue q ON q.id = e.queue_id AND q.group_limit IS NOT NULL
    WHERE e.gone GROUP BY e.queue_id, coalesce(e.name, '') ORDER BY min(e.id)
), emptied AS (
    DELETE FROM {schema}.job_lease l WHERE l.token = ANY (ARRAY(SELECT e.token FROM entry e EXCEPT SELECT r.token FROM rest r))
), waited AS (
    DELETE FROM {schema}.job_waiting w WHERE w.job_id = ANY ($2) RETURNING w.job_id, w.token, w.attempts
), located AS MATERIALIZED (
    SELECT a.id, d.id IS NOT NULL AS ended, e.id IS NOT NULL AS leased,
        d.id IS NULL AND coalesce(e.token, w.token, 0) = 0 AS never_claimed,
        coalesce(e.token, w.token, 0) AS token, coalesce(d.attempts, e.attempt, w.attempts, 0) AS attempts
    FROM target a
    LEFT JOIN entry e ON e.id = a.id
    LEFT JOIN waited w ON w.job_id = a.id
    LEFT JOIN LATERAL (SELECT d.* FROM {schema}.job_end d WHERE d.id = a.id LIMIT 1) d ON true
), deleted AS (
    DELETE FROM {schema}.job j WHERE j.id = ANY (ARRAY(SELECT p.id FROM located p WHERE p.never_claimed))
), failed AS (
    INSERT INTO {schema}.job_end (id, finished_at, token, attempts, status, last_error)
    SELECT p.id, $1::timestamptz, p.token, p.attempts, 'failed', $3 FROM located p WHERE NOT p.ended AND NOT p.never_claimed
), forgotten AS (
    DELETE FROM {schema}.job_note n WHERE n.job_id = ANY ($2)
), notification AS MATERIALIZED (
    SELECT {schema}.leasehold_job_notify() AS notified WHERE EXISTS (SELECT FROM located p WHERE p.leased)
)
SELECT p.id, p.attempts, (SELECT w.notified FROM notification w) AS notified FROM located p WHERE NOT p.never_claimed
