-- Returns those of the jobs $1 with a row that another transaction has locked and that the end of the job deletes or changes. Keeps no lock.
WITH free_job AS MATERIALIZED (
    SELECT j.id FROM {schema}.job j JOIN {schema}.queue q ON q.id = j.queue_id
    WHERE j.id = ANY ($1::bigint[]) AND NOT q.keep_completed FOR UPDATE OF j SKIP LOCKED
), free_note AS MATERIALIZED (
    SELECT n.job_id AS id FROM {schema}.job_note n WHERE n.job_id = ANY ($1::bigint[]) FOR UPDATE SKIP LOCKED
), free_key AS MATERIALIZED (
    SELECT k.job_id AS id FROM {schema}.job_key k WHERE k.job_id = ANY ($1::bigint[]) FOR UPDATE SKIP LOCKED
)
SELECT j.id FROM {schema}.job j JOIN {schema}.queue q ON q.id = j.queue_id
WHERE j.id = ANY ($1::bigint[]) AND NOT q.keep_completed AND j.id NOT IN (SELECT f.id FROM free_job f)
UNION
SELECT n.job_id FROM {schema}.job_note n WHERE n.job_id = ANY ($1::bigint[]) AND n.job_id NOT IN (SELECT f.id FROM free_note f)
UNION
SELECT k.job_id FROM {schema}.job_key k WHERE k.job_id = ANY ($1::bigint[]) AND k.job_id NOT IN (SELECT f.id FROM free_key f)
