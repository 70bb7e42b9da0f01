-- Creates $1 executions with a graph of seven nodes: four completed, three running under leases.
WITH one AS MATERIALIZED (
    SELECT n, md5('request' || n)::uuid AS request_id, md5('execution' || n)::uuid AS execution_id, md5('workspace')::uuid AS workspace_id,
        md5('definition')::uuid AS definition_id, md5('version')::uuid AS version_id
    FROM generate_series(1, $1::bigint) AS n
), node AS MATERIALIZED (
    SELECT o.*, k::smallint AS node, o.n * 10 + k AS job_id, k < 4 AS done FROM one o CROSS JOIN generate_series(0, 6) AS k
), requests AS (
    INSERT INTO leasehold.workflow_execution_queue (id, workspace_id, definition_id, version_id, status, run_at, created_at, claimed_at,
        dispatched_at, execution_id)
    SELECT request_id, workspace_id, definition_id, version_id, 'DISPATCHED', now(), now(), now(), now(), execution_id FROM one
), executions AS (
    INSERT INTO leasehold.workflow_execution (id, workspace_id, request_id, definition_id, version_id, status, admission, started_at)
    SELECT execution_id, workspace_id, request_id, definition_id, version_id, 'RUNNING', n, now() FROM one
), graphs AS (
    INSERT INTO leasehold.execution_graph (execution_id, started_at, deadline, state)
    SELECT execution_id, now(), now() + interval '1 hour', 'ccccrrr' FROM one
), jobs AS (
    INSERT INTO leasehold.job (id, queue_id, kind, payload, execution_id, node) SELECT job_id, 1, 'send', '{}', execution_id, node FROM node
), ends AS (
    INSERT INTO leasehold.job_end (id, finished_at, token, attempts, status) SELECT job_id, now(), 1, 1, 'completed' FROM node WHERE done
), leases AS (
    INSERT INTO leasehold.job_lease (token, claimed_at, expires_at, queue_id, entries, nodes, worker, ids, ends, attempts)
    SELECT n, now(), now() + interval '1 hour', 1, 3, true, 'worker', array_agg(job_id), array_agg(now() + interval '1 hour'),
        array_agg(1) FROM node WHERE NOT done GROUP BY n
)
INSERT INTO leasehold.execution_node (execution_id, node, job_id, started_at, attempts, finished_at, output)
SELECT execution_id, node, job_id, now(), 1, CASE WHEN done THEN now() END, CASE WHEN done THEN '1'::json END FROM node
