-- Counts the running jobs of each group of a queue, and moves groups into and out of the round. Returns the new round.
-- release: 1
-- Called with the round that leasehold_job_fold returned, when group_limit has changed. Groups that join do so in the order of their names.
-- A result that was being written while the limit was set from NULL may add no end, so the count may be too high until every transaction of that time has
-- ended; then (recount_after) a claim counts once more.
CREATE OR REPLACE FUNCTION {schema}.leasehold_job_recount(p_queue integer, p_limit integer, p_round {schema}.job_round, p_xid_offset bigint)
RETURNS {schema}.job_round LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    round {schema}.job_round := p_round;
    numbered bigint;
    seen pg_snapshot;
BEGIN
    WITH run AS (
        SELECT g.name, 1 AS jobs FROM {schema}.job_lease l
        CROSS JOIN LATERAL unnest(coalesce(l.groups, array_fill(''::text, ARRAY[l.entries]))) AS g (name)
        WHERE l.queue_id = p_queue AND p_limit IS NOT NULL
        UNION ALL
        -- Ends that the next fold subtracts.
        SELECT e.group_name, e.ended FROM {schema}.job_group_end e
        WHERE e.queue_id = p_queue AND (e.xid >= round.ends_xid OR e.xid = ANY (round.ends_late)) AND p_limit IS NOT NULL
    ), counted AS MATERIALIZED (
        SELECT r.name, sum(r.jobs)::integer AS running FROM run r GROUP BY r.name
    ), valid AS MATERIALIZED (
        SELECT DISTINCT ON (o.group_name) o.ctid AS spot, o.*
        FROM {schema}.job_group o WHERE o.queue_id = p_queue ORDER BY o.group_name, o.version DESC
    ), after AS MATERIALIZED (
        SELECT coalesce(v.group_name, c.name) AS group_name, v.spot, coalesce(v.leftover, false) AS leftover, coalesce(v.turn, 0) AS turn,
            coalesce(v.ready, false) AS was_ready, coalesce(v.running, 0) AS was_running, coalesce(v.has_jobs, false) AS has_jobs,
            coalesce(v.from_created_at, '-infinity') AS from_created_at, coalesce(v.from_id, 0) AS from_id,
            coalesce(v.from_rank, -32768) AS from_rank, coalesce(c.running, 0) AS running,
            coalesce(v.has_jobs, false) AND (p_limit IS NULL OR coalesce(c.running, 0) < p_limit) AS ready
        FROM valid v FULL JOIN counted c ON c.name = v.group_name
    ), changed AS MATERIALIZED (
        SELECT a.*, round.last_number + row_number() OVER (ORDER BY NOT (a.ready AND NOT a.was_ready), a.group_name COLLATE "C") AS number
        FROM after a WHERE a.running <> a.was_running OR a.ready <> a.was_ready OR NOT (a.has_jobs OR a.running > 0 OR a.leftover)
    ), gone AS (
        DELETE FROM {schema}.job_group o WHERE o.ctid = ANY (ARRAY(SELECT c.spot FROM changed c)) AND o.xmax = '0' RETURNING o.group_name
    ), put AS (
        INSERT INTO {schema}.job_group (queue_id, group_name, version, turn, from_created_at, from_id, running, from_rank, has_jobs, ready, leftover)
        SELECT p_queue, c.group_name, c.number, CASE WHEN c.ready AND NOT c.was_ready THEN c.number ELSE c.turn END, c.from_created_at,
            c.from_id, c.running, c.from_rank, c.has_jobs, c.ready, c.leftover OR c.spot IS NOT NULL AND g.group_name IS NULL
        FROM changed c LEFT JOIN gone g ON g.group_name = c.group_name
        WHERE c.has_jobs OR c.running > 0 OR c.leftover OR c.spot IS NOT NULL AND g.group_name IS NULL
    )
    SELECT pg_current_snapshot(), (SELECT count(*) FROM changed) INTO seen, numbered;
    round.last_number := round.last_number + numbered;
    round.recount_after := CASE WHEN round.group_limit IS NULL AND p_limit IS NOT NULL 
        THEN (pg_snapshot_xmax(seen)::text::bigint + p_xid_offset)::text::xid8 END;
    round.group_limit := p_limit;
    RETURN round;
END
$$
