-- Deletes ended jobs like job/prune, except those whose rows are locked. A locked job does not count towards the limit.
WITH completed AS MATERIALIZED (
    SELECT e.id FROM {schema}.job_end e CROSS JOIN LATERAL (SELECT 1 FROM {schema}.job j WHERE j.id = e.id LIMIT 1 FOR UPDATE SKIP LOCKED) j
    WHERE e.status = 'completed' AND e.finished_at < $1
    ORDER BY e.finished_at LIMIT $3 FOR UPDATE OF e SKIP LOCKED
), failed AS MATERIALIZED (
    SELECT e.id FROM {schema}.job_end e CROSS JOIN LATERAL (SELECT 1 FROM {schema}.job j WHERE j.id = e.id LIMIT 1 FOR UPDATE SKIP LOCKED) j
    WHERE e.status = 'failed' AND e.finished_at < $2
    ORDER BY e.finished_at LIMIT $3 - (SELECT count(*) FROM completed) FOR UPDATE OF e SKIP LOCKED
), old AS MATERIALIZED (
    SELECT c.id FROM completed c UNION ALL SELECT f.id FROM failed f
), ended AS (
    DELETE FROM {schema}.job_end e WHERE e.id = ANY (ARRAY(SELECT o.id FROM old o))
)
DELETE FROM {schema}.job j WHERE j.id = ANY (ARRAY(SELECT o.id FROM old o))
