-- Takes the first p_cut of the jobs that leasehold_job_turns selected: deletes their waiting rows and moves their groups. Returns the new round.
-- release: 1
CREATE OR REPLACE FUNCTION {schema}.leasehold_job_take(
    p_queue integer, p_limit integer, p_round {schema}.job_round, p_cut integer, p_ids bigint[], p_waiting tid[], p_ranks smallint[], p_times timestamptz[],
    p_givers integer[], p_names text[], p_rows tid[], p_leftover boolean[], p_running integer[], p_counts integer[], p_skipped boolean[], p_idle text[]
) RETURNS {schema}.job_round LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    round {schema}.job_round := p_round;
BEGIN
    DELETE FROM {schema}.job_waiting w WHERE w.ctid = ANY (p_waiting[1:p_cut]);
    WITH job AS MATERIALIZED (
        SELECT u.* FROM unnest(p_ids, p_ranks, p_times, p_givers) WITH ORDINALITY AS u (id, rank, created_at, giver, pos)
        WHERE u.pos <= p_cut OR u.id IS NULL
    ), gave AS MATERIALIZED (
        SELECT j.giver, count(*)::integer AS jobs, max(j.pos) AS pos FROM job j GROUP BY j.giver
    ), changed AS MATERIALIZED (
        SELECT p_names[g.giver] AS name, p_rows[g.giver] AS spot, p_leftover[g.giver] AS leftover, j.id, j.rank, j.created_at, p_skipped[g.giver] AS skipped,
            CASE WHEN p_limit IS NULL THEN 0 ELSE p_running[g.giver] + g.jobs END AS running,
            j.id IS NULL OR p_counts[g.giver] > g.jobs OR p_skipped[g.giver] AS has_jobs,
            round.last_number + row_number() OVER (ORDER BY g.pos) AS number
        FROM gave g JOIN job j ON j.pos = g.pos
        UNION ALL
        SELECT i.name, p_rows[array_position(p_names, i.name)], p_leftover[array_position(p_names, i.name)], NULL, NULL, NULL, false,
            p_running[array_position(p_names, i.name)], false,
            round.last_number + cardinality(p_names) + row_number() OVER ()
        FROM unnest(p_idle) AS i (name)
    ), gone AS (
        DELETE FROM {schema}.job_group o USING changed c WHERE o.ctid = c.spot AND o.xmax = '0'
        RETURNING o.group_name, o.from_rank, o.from_created_at, o.from_id
    )
    INSERT INTO {schema}.job_group (queue_id, group_name, version, turn, from_created_at, from_id, running, from_rank, has_jobs, ready, leftover)
    SELECT p_queue, c.name, c.number, c.number,
        CASE WHEN c.id IS NULL OR c.skipped THEN coalesce(g.from_created_at, '-infinity') ELSE c.created_at END,
        CASE WHEN c.id IS NULL OR c.skipped THEN coalesce(g.from_id, 0) ELSE c.id END, c.running,
        CASE WHEN c.id IS NULL OR c.skipped THEN coalesce(g.from_rank, -32768) ELSE c.rank END,
        c.has_jobs, c.has_jobs AND (p_limit IS NULL OR c.running < p_limit), c.leftover OR g.group_name IS NULL
    FROM changed c LEFT JOIN gone g ON g.group_name = c.name
    WHERE c.has_jobs OR c.running > 0 OR c.leftover OR g.group_name IS NULL;
    round.last_number := round.last_number + coalesce(cardinality(p_names), 0) + coalesce(cardinality(p_idle), 0);
    SELECT coalesce((
        SELECT o.turn FROM {schema}.job_group o WHERE o.queue_id = p_queue AND o.ready AND o.turn >= round.round_from ORDER BY o.turn LIMIT 1),
        round.last_number + 1) INTO round.round_from;
    RETURN round;
END
$$
