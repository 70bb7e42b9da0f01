-- Returns those of the jobs $1, nodes of graphs, of whose execution or job another transaction has locked a row. Keeps no lock.
WITH node AS MATERIALIZED (
    SELECT j.id, j.execution_id, e.request_id FROM {schema}.job j JOIN {schema}.workflow_execution e ON e.id = j.execution_id WHERE j.id = ANY ($1::bigint[])
), free_request AS MATERIALIZED (
    SELECT q.id FROM {schema}.workflow_execution_queue q WHERE q.id = ANY (ARRAY(SELECT n.request_id FROM node n)) FOR UPDATE SKIP LOCKED
), free_execution AS MATERIALIZED (
    SELECT e.id FROM {schema}.workflow_execution e WHERE e.id = ANY (ARRAY(SELECT n.execution_id FROM node n)) FOR UPDATE SKIP LOCKED
), free_graph AS MATERIALIZED (
    SELECT g.execution_id AS id FROM {schema}.execution_graph g WHERE g.execution_id = ANY (ARRAY(SELECT n.execution_id FROM node n))
    FOR UPDATE SKIP LOCKED
), free_job AS MATERIALIZED (
    SELECT j.id FROM {schema}.job j WHERE j.id = ANY ($1::bigint[]) FOR UPDATE SKIP LOCKED
), free_note AS MATERIALIZED (
    SELECT n.job_id AS id FROM {schema}.job_note n WHERE n.job_id = ANY ($1::bigint[]) FOR UPDATE SKIP LOCKED
)
SELECT n.id FROM node n
WHERE n.request_id NOT IN (SELECT f.id FROM free_request f) OR n.execution_id NOT IN (SELECT f.id FROM free_execution f)
    OR n.id NOT IN (SELECT f.id FROM free_job f)
    OR (n.execution_id NOT IN (SELECT f.id FROM free_graph f)
        AND EXISTS (SELECT 1 FROM {schema}.execution_graph g WHERE g.execution_id = n.execution_id))
    OR (n.id NOT IN (SELECT f.id FROM free_note f) AND EXISTS (SELECT 1 FROM {schema}.job_note o WHERE o.job_id = n.id))
