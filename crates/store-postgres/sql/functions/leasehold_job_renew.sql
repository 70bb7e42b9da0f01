-- Extends leases that p_worker holds and returns their jobs.
-- release: 1
-- Takes pages and jobs like leasehold_job_finish. Skips pages that are locked; the caller tells them from lost leases.
CREATE OR REPLACE FUNCTION {schema}.leasehold_job_renew(
    p_now timestamptz, p_worker text, p_pages bigint[], p_first integer[], p_ids bigint[], p_lease_us bigint
) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
DECLARE
    page {schema}.job_lease;
    moment timestamptz;
    ends_at timestamptz;
    given bigint[];
BEGIN
    FOR i IN 1..cardinality(p_pages) LOOP
        SELECT l.* INTO page FROM {schema}.job_lease l WHERE l.token = p_pages[i] AND l.worker = p_worker FOR UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        moment := coalesce(p_now, clock_timestamp());
        ends_at := moment + p_lease_us::double precision * interval '1 microsecond';
        given := p_ids[p_first[i]:coalesce(p_first[i + 1] - 1, cardinality(p_ids))];
        UPDATE {schema}.job_lease l SET ends = r.ends, expires_at = r.expires_at
        FROM (
            SELECT array_agg(n.ends ORDER BY n.ordinal) AS ends, min(n.ends) AS expires_at
            FROM (
                SELECT e.ordinal, CASE WHEN e.ends > moment AND e.id = ANY (given) THEN ends_at ELSE e.ends END AS ends
                FROM unnest(page.ids, page.ends) WITH ORDINALITY AS e (id, ends, ordinal)
            ) n
        ) r
        WHERE l.token = page.token;
        RETURN QUERY SELECT e.id FROM unnest(page.ids, page.ends) AS e (id, ends) WHERE e.ends > moment AND e.id = ANY (given);
    END LOOP;
END
$$
