-- Deletes ended jobs, oldest first. Waits shortly for the rows of jobs that another transaction has locked; if this fails, job/prune_free deletes the others.
WITH limits AS MATERIALIZED (
    SELECT set_config('lock_timeout', '30ms', true)
), completed AS MATERIALIZED (
    SELECT e.id FROM {schema}.job_end e WHERE e.status = 'completed' AND e.finished_at < $1
    ORDER BY e.finished_at LIMIT $3 FOR UPDATE SKIP LOCKED
), failed AS MATERIALIZED (
    SELECT e.id FROM {schema}.job_end e WHERE e.status = 'failed' AND e.finished_at < $2
    ORDER BY e.finished_at LIMIT $3 - (SELECT count(*) FROM completed) FOR UPDATE SKIP LOCKED
), old AS MATERIALIZED (
    SELECT c.id FROM completed c, limits UNION ALL SELECT f.id FROM failed f, limits
), ended AS (
    DELETE FROM {schema}.job_end e WHERE e.id = ANY (ARRAY(SELECT o.id FROM old o))
)
DELETE FROM {schema}.job j WHERE j.id = ANY (ARRAY(SELECT o.id FROM old o))
