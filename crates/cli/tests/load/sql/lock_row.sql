-- Locks a random row of the table $2 that belongs to one of the workspaces $1, if one is free, and returns how many were locked.
WITH running AS (
    SELECT e.id FROM workflow_execution e WHERE e.status = 'RUNNING' AND e.workspace_id = ANY ($1::text[]::uuid[])
), request AS (
    SELECT 1 FROM workflow_execution_queue
    WHERE $2 = 'workflow_execution_queue' AND workspace_id = ANY ($1::text[]::uuid[]) AND finished_at IS NULL
    ORDER BY random() LIMIT 1 FOR UPDATE SKIP LOCKED
), execution AS (
    SELECT 1 FROM workflow_execution
    WHERE $2 = 'workflow_execution' AND workspace_id = ANY ($1::text[]::uuid[]) AND status = 'RUNNING'
    ORDER BY random() LIMIT 1 FOR UPDATE SKIP LOCKED
), turn AS (
    SELECT 1 FROM workspace_turn WHERE $2 = 'workspace_turn' AND workspace_id = ANY ($1::text[]::uuid[])
    ORDER BY random() LIMIT 1 FOR UPDATE SKIP LOCKED
), tenant AS (
    SELECT 1 FROM workspace WHERE $2 = 'workspace' AND id = ANY ($1::text[]::uuid[])
    ORDER BY random() LIMIT 1 FOR UPDATE SKIP LOCKED
), graph AS (
    SELECT 1 FROM execution_graph WHERE $2 = 'execution_graph' AND execution_id = ANY (ARRAY(SELECT id FROM running))
    ORDER BY random() LIMIT 1 FOR UPDATE SKIP LOCKED
), node AS (
    SELECT 1 FROM execution_node WHERE $2 = 'execution_node' AND execution_id = ANY (ARRAY(SELECT id FROM running))
    ORDER BY random() LIMIT 1 FOR UPDATE SKIP LOCKED
), one_job AS (
    SELECT 1 FROM job WHERE $2 = 'job' AND execution_id = ANY (ARRAY(SELECT id FROM running))
    ORDER BY random() LIMIT 1 FOR UPDATE SKIP LOCKED
)
SELECT (SELECT count(*) FROM request) + (SELECT count(*) FROM execution) + (SELECT count(*) FROM turn) + (SELECT count(*) FROM tenant)
    + (SELECT count(*) FROM graph) + (SELECT count(*) FROM node) + (SELECT count(*) FROM one_job) AS locked
