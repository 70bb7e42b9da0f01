-- Returns those of the executions $1 of which another transaction has locked the graph, the execution or the request. Keeps no lock.
WITH execution AS MATERIALIZED (
    SELECT e.id, e.request_id FROM {schema}.workflow_execution e WHERE e.id = ANY ($1::uuid[])
), free_request AS MATERIALIZED (
    SELECT q.id FROM {schema}.workflow_execution_queue q WHERE q.id = ANY (ARRAY(SELECT e.request_id FROM execution e)) FOR UPDATE SKIP LOCKED
), free_execution AS MATERIALIZED (
    SELECT e.id FROM {schema}.workflow_execution e WHERE e.id = ANY ($1::uuid[]) FOR UPDATE SKIP LOCKED
), free_graph AS MATERIALIZED (
    SELECT g.execution_id AS id FROM {schema}.execution_graph g WHERE g.execution_id = ANY ($1::uuid[]) FOR UPDATE SKIP LOCKED
)
SELECT e.id FROM execution e
WHERE e.request_id NOT IN (SELECT f.id FROM free_request f) OR e.id NOT IN (SELECT f.id FROM free_execution f)
    OR (e.id NOT IN (SELECT f.id FROM free_graph f) AND EXISTS (SELECT 1 FROM {schema}.execution_graph g WHERE g.execution_id = e.id))
