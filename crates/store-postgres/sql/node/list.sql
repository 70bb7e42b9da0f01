-- Returns the graph of an execution with its started nodes, and for running nodes the state of their jobs. Outputs are included as long as
-- their total is at most $2 bytes. Returns one row without a node if none was started.
WITH graph AS MATERIALIZED (
    SELECT g.execution_id, g.state, g.ended, g.finished_at, e.workspace_id, e.version_id
    FROM {schema}.execution_graph g JOIN {schema}.workflow_execution e ON e.id = g.execution_id WHERE g.execution_id = $1
), node AS MATERIALIZED (
    SELECT n.*, j.queue_id, coalesce(sum(octet_length(n.output::text)) OVER (ORDER BY n.node), 0) <= $2::bigint AS fits
    FROM {schema}.execution_node n
    LEFT JOIN LATERAL (SELECT j.queue_id FROM {schema}.job j WHERE n.finished_at IS NULL AND j.id = n.job_id LIMIT 1) j ON true
    WHERE n.execution_id = $1
), running AS MATERIALIZED (
    SELECT i.id, i.attempt
    FROM {schema}.job_lease l CROSS JOIN unnest(l.ids, l.attempts) AS i (id, attempt)
    WHERE l.nodes AND l.queue_id = ANY (ARRAY(SELECT DISTINCT n.queue_id FROM node n))
        AND l.ids && ARRAY(SELECT n.job_id FROM node n WHERE n.finished_at IS NULL AND n.job_id IS NOT NULL)
)
SELECT g.state, g.ended, g.workspace_id, g.version_id, n.node, n.job_id,
    CASE WHEN n.fits THEN n.output END AS output, n.output IS NOT NULL AND NOT n.fits AS omitted, n.started_at, n.finished_at,
    g.finished_at AS graph_finished_at,
    CASE WHEN n.finished_at IS NULL THEN coalesce(d.attempts, r.attempt, w.attempts, 0) ELSE n.attempts END AS attempts,
    CASE WHEN n.finished_at IS NULL THEN coalesce(d.last_error, o.last_error) ELSE n.error END AS error
FROM graph g
LEFT JOIN node n ON true
LEFT JOIN running r ON r.id = n.job_id
LEFT JOIN LATERAL (SELECT d.* FROM {schema}.job_end d WHERE n.finished_at IS NULL AND d.id = n.job_id LIMIT 1) d ON true
LEFT JOIN LATERAL (SELECT w.* FROM {schema}.job_waiting w WHERE n.finished_at IS NULL AND w.job_id = n.job_id LIMIT 1) w ON true
LEFT JOIN LATERAL (SELECT o.* FROM {schema}.job_note o WHERE n.finished_at IS NULL AND o.job_id = n.job_id LIMIT 1) o ON true
