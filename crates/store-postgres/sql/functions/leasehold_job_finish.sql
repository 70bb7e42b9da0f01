-- Ends claims that p_worker holds and returns the claims that were held.
-- release: 1
-- The entries of page p_pages[i] begin at p_first[i] of the other arrays: the job, its new status (completed, failed,
-- queued), result, error, wait, and whether the attempt does not count. p_plain: all are completed, without results.
-- Locks each page before it reads the clock. Skips pages that are locked; the caller tells them from lost leases. Does not wait long for rows of
-- single jobs: the caller then ends fewer jobs at once.
-- p_xid_offset: the job_xid_offset of the epoch.
-- p_nodes: the caller advances the graphs of nodes, and has limited the waits for locks. Otherwise nodes stay unchanged and are returned as of_graph, except
-- those that are requeued without counting the attempt, which does not change a graph.
CREATE OR REPLACE FUNCTION {schema}.leasehold_job_finish(
    p_now timestamptz, p_worker text, p_pages bigint[], p_first integer[], p_ids bigint[], p_plain boolean, p_becomes text[],
    p_results json[], p_errors text[], p_waits_us bigint[], p_uncounted boolean[], p_nodes boolean, p_xid_offset bigint
) RETURNS TABLE (id bigint, token bigint, becomes text, run_at timestamptz) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    page {schema}.job_lease;
    settings {schema}.queue;
    moment timestamptz;
    low integer;
    high integer;
    given bigint[];
    skipped bigint[];
    done bigint[] := '{}';
    wakes boolean := false;
    held record;
BEGIN
    IF NOT p_nodes THEN
        PERFORM set_config('lock_timeout', '200ms', true);
    END IF;
    FOR i IN 1..cardinality(p_pages) LOOP
        SELECT l.* INTO page FROM {schema}.job_lease l WHERE l.token = p_pages[i] AND l.worker = p_worker FOR UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        moment := coalesce(p_now, clock_timestamp());
        low := p_first[i];
        high := coalesce(p_first[i + 1] - 1, cardinality(p_ids));
        given := p_ids[low:high];
        IF settings.id IS DISTINCT FROM page.queue_id THEN
            SELECT q.* INTO settings FROM {schema}.queue q WHERE q.id = page.queue_id;
        END IF;
        wakes := wakes OR settings.max_running IS NOT NULL OR settings.group_limit IS NOT NULL;
        skipped := NULL;
        IF page.nodes AND NOT p_nodes THEN
            SELECT array_agg(j.id) INTO skipped
            FROM unnest(given) WITH ORDINALITY AS g (id, ordinal) JOIN {schema}.job j ON j.id = g.id
            WHERE j.node IS NOT NULL
                AND (p_plain OR NOT (p_becomes[low - 1 + g.ordinal] = 'queued' AND p_uncounted[low - 1 + g.ordinal]));
            RETURN QUERY SELECT e.id, page.token, 'of_graph', NULL::timestamptz
            FROM unnest(page.ids, page.ends) AS e (id, ends) WHERE e.id = ANY (skipped) AND e.ends > moment;
        END IF;
        IF p_plain AND page.expires_at > moment AND skipped IS NULL AND (page.ids = given OR page.ids <@ given) THEN
            -- The usual case: all remaining entries of the page.
            DELETE FROM {schema}.job_lease l WHERE l.token = page.token;
            IF settings.keep_completed THEN
                INSERT INTO {schema}.job_end (id, finished_at, token, attempts, status, last_error)
                SELECT e.id, moment, page.token, e.attempt, 'completed',
                    (SELECT n.last_error FROM {schema}.job_note n WHERE n.job_id = e.id)
                FROM unnest(page.ids, page.attempts) AS e (id, attempt);
            ELSE
                DELETE FROM {schema}.job j WHERE j.id = ANY (page.ids);
            END IF;
            IF settings.group_limit IS NOT NULL THEN
                INSERT INTO {schema}.job_group_end (queue_id, ended, xid, job_id, group_name)
                SELECT page.queue_id, count(*), (pg_current_xact_id()::text::bigint + p_xid_offset)::text::xid8, min(e.id), coalesce(e.name, '')
                FROM unnest(page.ids, page.groups) AS e (id, name) GROUP BY coalesce(e.name, '') ORDER BY min(e.id);
            END IF;
            done := done || page.ids;
            RETURN QUERY SELECT e.id, page.token, NULL::text, NULL::timestamptz FROM unnest(page.ids) AS e (id);
            CONTINUE;
        END IF;

        FOR held IN
            WITH entry AS MATERIALIZED (
                SELECT e.id, e.ends, e.attempt, e.name, e.ordinal, g.ordinal AS given_ordinal,
                    g.ordinal IS NOT NULL AND e.ends > moment AND (skipped IS NULL OR e.id <> ALL (skipped)) AS owned
                FROM unnest(page.ids, page.ends, page.attempts, page.groups) WITH ORDINALITY AS e (id, ends, attempt, name, ordinal)
                LEFT JOIN unnest(given) WITH ORDINALITY AS g (id, ordinal) ON g.id = e.id
            ), rest AS (
                SELECT min(e.ends) AS expires_at, count(*)::integer AS entries, array_agg(e.id ORDER BY e.ordinal) AS ids,
                    array_agg(e.ends ORDER BY e.ordinal) AS ends, array_agg(e.attempt ORDER BY e.ordinal) AS attempts,
                    CASE WHEN page.groups IS NOT NULL THEN array_agg(e.name ORDER BY e.ordinal) END AS groups
                FROM entry e WHERE NOT e.owned
            ), kept AS (
                UPDATE {schema}.job_lease l
                SET expires_at = r.expires_at, entries = r.entries, ids = r.ids, ends = r.ends, attempts = r.attempts, groups = r.groups
                FROM rest r WHERE l.token = page.token AND r.entries > 0 AND r.entries < page.entries
            ), gone AS (
                DELETE FROM {schema}.job_lease l USING rest r WHERE l.token = page.token AND r.entries = 0
            ), owned AS MATERIALIZED (
                SELECT e.id, e.attempt, e.name, CASE WHEN p_plain THEN 'completed' ELSE p_becomes[low - 1 + e.given_ordinal] END AS becomes,
                    p_results[low - 1 + e.given_ordinal] AS result, p_errors[low - 1 + e.given_ordinal] AS error,
                    moment + p_waits_us[low - 1 + e.given_ordinal]::double precision * interval '1 microsecond' AS run_at,
                    p_uncounted[low - 1 + e.given_ordinal] AS uncounted
                FROM entry e WHERE e.owned
            ), freed AS (
                INSERT INTO {schema}.job_group_end (queue_id, ended, xid, job_id, group_name)
                SELECT page.queue_id, count(*), (pg_current_xact_id()::text::bigint + p_xid_offset)::text::xid8, min(o.id), coalesce(o.name, '')
                FROM owned o WHERE settings.group_limit IS NOT NULL GROUP BY coalesce(o.name, '') ORDER BY min(o.id)
            ), ended AS (
                INSERT INTO {schema}.job_end (id, finished_at, token, attempts, status, result, last_error)
                SELECT o.id, moment, page.token, o.attempt, o.becomes, o.result,
                    coalesce(o.error, (SELECT n.last_error FROM {schema}.job_note n WHERE n.job_id = o.id))
                FROM owned o WHERE o.becomes = 'failed' OR (o.becomes = 'completed' AND settings.keep_completed)
            ), discarded AS (
                DELETE FROM {schema}.job j
                WHERE NOT settings.keep_completed AND j.id = ANY (ARRAY(SELECT o.id FROM owned o WHERE o.becomes = 'completed'))
            ), requeued AS (
                INSERT INTO {schema}.job_waiting (job_id, created_at, run_at, token, queue_id, attempts, priority, ready, group_name, xid)
                SELECT o.id, j.created_at, o.run_at, page.token, page.queue_id, o.attempt - o.uncounted::integer, j.priority,
                    o.run_at <= moment, j.group_name,
                    CASE WHEN j.group_name IS NOT NULL THEN (pg_current_xact_id()::text::bigint + p_xid_offset)::text::xid8 END
                FROM owned o CROSS JOIN LATERAL (SELECT j.* FROM {schema}.job j WHERE j.id = o.id LIMIT 1) j
                WHERE o.becomes = 'queued'
            ), noted AS (
                INSERT INTO {schema}.job_note (job_id, last_error)
                SELECT o.id, o.error FROM owned o WHERE o.becomes = 'queued' AND o.error IS NOT NULL
                ON CONFLICT (job_id) DO UPDATE SET last_error = excluded.last_error
            )
            SELECT o.id, o.becomes, o.run_at FROM owned o
        LOOP
            IF held.becomes = 'queued' THEN
                wakes := true;
            ELSE
                done := done || held.id;
            END IF;
            id := held.id;
            token := page.token;
            becomes := held.becomes;
            run_at := held.run_at;
            RETURN NEXT;
        END LOOP;
    END LOOP;
    IF cardinality(done) > 0 THEN
        DELETE FROM {schema}.job_key k WHERE k.job_id = ANY (done) AND k.holds_until IS NULL;
        DELETE FROM {schema}.job_note n WHERE n.job_id = ANY (done);
    END IF;
    IF wakes OR (SELECT l.max_running IS NOT NULL FROM {schema}.job_limit l) THEN
        PERFORM {schema}.leasehold_job_notify();
    END IF;
END
$$
