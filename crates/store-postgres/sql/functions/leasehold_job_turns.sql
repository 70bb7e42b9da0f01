-- Selects the next jobs of the groups of a queue: one of each group in turn, within a group by priority, age and id. Changes nothing, but locks the rows.
-- release: 1
-- The caller holds the advisory lock of the queue. Jobs without group are one group, '': p_ungrouped of them are counted, as rows without an id.
-- ids to times: the jobs, in order; givers: which of the groups each is of. names to skipped: the groups that give a job. idle: groups that turned out to
-- have none. counts: how many jobs a group has, as far as they were read: at least one more than it gives, if it has more. skipped: whether one of them
-- is locked by another transaction.
-- p_held, p_held_names: how many places each group holds, if the caller has places of its own; the groups that hold fewest give first.
CREATE OR REPLACE FUNCTION {schema}.leasehold_job_turns(
    p_queue integer, p_limit integer, p_from bigint, p_max integer, p_ungrouped integer, p_places integer, p_held_names text[], p_held integer[],
    OUT ids bigint[], OUT waiting tid[], OUT spots tid[], OUT tries integer[], OUT nodes boolean[], OUT bytes bigint[], OUT ranks smallint[],
    OUT times timestamptz[], OUT givers integer[], OUT names text[], OUT rows tid[], OUT leftover boolean[], OUT running integer[], OUT counts integer[],
    OUT skipped boolean[], OUT idle text[]
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    round record;
    share integer;
    level integer;
    extra integer := 0;
    visits integer := p_max + coalesce(cardinality(p_held_names), 0);
    used integer := (SELECT coalesce(sum(h.n), 0) FROM unnest(p_held) AS h (n));
    complete boolean;
BEGIN
    LOOP
        SELECT array_agg(g.group_name ORDER BY g.turn) AS names, array_agg(g.spot ORDER BY g.turn) AS rows,
            array_agg(g.leftover ORDER BY g.turn) AS leftover, array_agg(g.running ORDER BY g.turn) AS running,
            array_agg(coalesce(h.n, 0) ORDER BY g.turn) AS held, array_agg(g.from_rank ORDER BY g.turn) AS from_rank,
            array_agg(g.from_created_at ORDER BY g.turn) AS from_created_at, array_agg(g.from_id ORDER BY g.turn) AS from_id, count(*)::integer AS n
        INTO round
        FROM (
            SELECT o.ctid AS spot, o.* FROM {schema}.job_group o
            WHERE o.queue_id = p_queue AND o.ready AND o.turn >= p_from AND o.version = (
                SELECT v.version FROM {schema}.job_group v WHERE v.queue_id = p_queue AND v.group_name = o.group_name
                ORDER BY v.version DESC LIMIT 1)
            ORDER BY o.turn LIMIT visits
        ) g LEFT JOIN unnest(p_held_names, p_held) AS h (name, n) ON h.name = g.group_name;
        EXIT WHEN round.n = 0;
        -- The lowest level that gives p_max jobs if every group has enough: job r of a group that holds h has the level h + r.
        share := coalesce(share, 0);
        SELECT coalesce(min(l.level), share + p_max) INTO level FROM (
            SELECT c.held + 1 + (p_max - c.before - 1) / c.n AS level FROM (
                SELECT s.held, s.n, s.n * s.held - s.sum AS before, lead(s.held) OVER (ORDER BY s.held) AS next
                FROM (
                    SELECT h.held, sum(count(*)) OVER w AS n, sum(h.held * count(*)) OVER w AS sum
                    FROM unnest(round.held) AS h (held) GROUP BY h.held WINDOW w AS (ORDER BY h.held)
                ) s
            ) c
            WHERE c.next IS NULL OR c.n * c.next - (c.n * c.held - c.before) >= p_max
        ) l;
        level := greatest(level, share);

        WITH g AS MATERIALIZED (
            SELECT u.* FROM unnest(round.names, round.running, round.held, round.from_rank, round.from_created_at, round.from_id)
                WITH ORDINALITY AS u (name, running, held, from_rank, from_created_at, from_id, giver)
            WHERE u.held < level
        ), part AS MATERIALIZED (
            SELECT g.giver::integer AS giver, g.held, r.* , least(level - g.held, coalesce(p_limit - g.running, level - g.held)) AS most
            FROM g CROSS JOIN LATERAL (
                SELECT w.job_id AS id, w.spot, (-w.priority)::smallint AS rank, w.created_at, w.attempts, l.free
                FROM (
                    SELECT w.ctid AS spot, w.* FROM {schema}.job_waiting w
                    WHERE w.queue_id = p_queue AND w.group_name = g.name AND w.ready
                        AND ((-w.priority), w.created_at, w.job_id) > (g.from_rank, g.from_created_at, g.from_id)
                    ORDER BY (-w.priority), w.created_at, w.job_id
                    LIMIT least(level - g.held, coalesce(p_limit - g.running, level - g.held)) + 1 + extra
                ) w
                LEFT JOIN LATERAL (SELECT true AS free FROM {schema}.job_waiting l WHERE l.ctid = w.spot FOR UPDATE SKIP LOCKED) l ON true
                WHERE g.name <> ''
                UNION ALL
                SELECT NULL, NULL, 0, NULL, 0, true
                FROM generate_series(1, least(level - g.held + 1, coalesce(p_limit - g.running, level - g.held) + 1, p_ungrouped)) WHERE g.name = ''
            ) r
        ), numbered AS MATERIALIZED (
            SELECT s.*, row_number() OVER (PARTITION BY s.giver ORDER BY s.rank, s.created_at, s.id) AS r FROM part s WHERE s.free
        ), taken AS MATERIALIZED (
            SELECT n.*, row_number() OVER (ORDER BY n.held + n.r, n.giver) AS pos FROM numbered n WHERE n.r <= n.most
            ORDER BY n.held + n.r, n.giver LIMIT p_max
        ), fitting AS MATERIALIZED (
            SELECT t.* FROM taken t
            WHERE p_places IS NULL OR (used + t.pos <= p_places
                AND (used + t.pos <= p_places - (p_places + 3) / 4 OR t.held + t.r <= (p_places + 3) / 4))
        ), full_rows AS MATERIALIZED (
            SELECT f.*, j.spot AS job_spot, j.of_graph, j.bytes + coalesce(o.bytes, 0) AS bytes FROM fitting f
            LEFT JOIN LATERAL (
                SELECT j.ctid AS spot, j.node IS NOT NULL AS of_graph,
                    CASE WHEN j.node IS NOT NULL THEN coalesce(substring(j.payload ->> 'bytes'::text FROM '^[0-9]{1,9}$'::text)::integer, 0)
                        WHEN pg_column_compression(j.payload) IS NULL THEN pg_column_size(j.payload) ELSE 262144 END AS bytes
                FROM {schema}.job j WHERE j.id = f.id LIMIT 1
            ) j ON true
            LEFT JOIN LATERAL (
                SELECT coalesce(octet_length(o.last_error), 0)
                    + CASE WHEN pg_column_compression(o.progress) IS NULL THEN coalesce(pg_column_size(o.progress), 0) ELSE 262144 END AS bytes
                FROM {schema}.job_note o WHERE o.job_id = f.id LIMIT 1
            ) o ON f.attempts > 0
        ), summary AS MATERIALIZED (
            SELECT u.giver::integer AS giver, count(s.giver) FILTER (WHERE s.free)::integer AS found, coalesce(bool_or(s.free IS NULL), false) AND count(s.giver) > 0 AS skipped,
                count(s.giver) FILTER (WHERE s.free) > max(s.most) AS has_more, count(s.giver) >= max(s.most) + 1 + extra AS cut
            FROM generate_series(1, round.n) AS u (giver) LEFT JOIN part s ON s.giver = u.giver GROUP BY u.giver
        )
        SELECT array_agg(f.id ORDER BY f.pos), array_agg(f.spot ORDER BY f.pos), array_agg(f.job_spot ORDER BY f.pos),
            array_agg(f.attempts + 1 ORDER BY f.pos), array_agg(f.of_graph ORDER BY f.pos), array_agg(f.bytes ORDER BY f.pos),
            array_agg(f.rank ORDER BY f.pos), array_agg(f.created_at ORDER BY f.pos), array_agg(f.giver ORDER BY f.pos),
            (SELECT array_agg(s.found ORDER BY s.giver) FROM summary s), (SELECT array_agg(s.skipped ORDER BY s.giver) FROM summary s),
            (SELECT array_agg(round.names[s.giver] ORDER BY s.giver) FROM summary s JOIN g ON g.giver = s.giver WHERE s.found = 0 AND NOT s.skipped AND g.name <> ''),
            -- Read further: a group has more than its share while others have less, or rows are locked, or groups without jobs hide others.
            count(*) >= p_max OR p_places IS NOT NULL AND count(*) < (SELECT count(*) FROM taken)
                OR NOT ((SELECT coalesce(bool_or(s.has_more AND least(level, coalesce(p_limit, level)) = level), false) FROM summary s)
                    OR (SELECT coalesce(bool_or(s.skipped AND s.cut), false) FROM summary s)
                    OR (round.n >= visits AND EXISTS (SELECT FROM summary s WHERE s.found = 0)))
        INTO ids, waiting, spots, tries, nodes, bytes, ranks, times, givers, counts, skipped, idle, complete
        FROM full_rows f;
        names := round.names;
        rows := round.rows;
        leftover := round.leftover;
        running := round.running;
        EXIT WHEN complete OR share > 100000;
        share := level * 2;
        extra := extra * 2 + 16;
        visits := visits * 2;
    END LOOP;
END
$$
