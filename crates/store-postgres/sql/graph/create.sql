-- Inserts the graph of a RUNNING execution unless it exists. Locks the execution, so that it stays RUNNING until the transaction ends.
INSERT INTO {schema}.execution_graph (execution_id, started_at, finished_at, deadline, state, ended, error)
SELECT e.id, c.now, CASE WHEN $4::text IS NOT NULL THEN c.now END, c.now + v.execution_timeout_ms::double precision * interval '1 millisecond',
    $3, $4, $5
FROM {schema}.workflow_execution e
JOIN {schema}.workflow_definition_version v ON v.id = e.version_id
CROSS JOIN (SELECT coalesce($1::timestamptz, clock_timestamp()) AS now) c
WHERE e.id = $2 AND e.version_id = $6 AND e.finished_at IS NULL
FOR KEY SHARE OF e
ON CONFLICT DO NOTHING
