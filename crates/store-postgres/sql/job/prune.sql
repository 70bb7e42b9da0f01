-- Deletes ended jobs, oldest first.
WITH old AS MATERIALIZED (
    SELECT e.id FROM job_end e
    WHERE (e.status = 'completed' AND e.finished_at < $1) OR (e.status = 'failed' AND e.finished_at < $2)
    ORDER BY e.id LIMIT $3 FOR UPDATE SKIP LOCKED
), ended AS (
    DELETE FROM job_end e WHERE e.id = ANY (ARRAY(SELECT o.id FROM old o))
)
DELETE FROM job j WHERE j.id = ANY (ARRAY(SELECT o.id FROM old o))
