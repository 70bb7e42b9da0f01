-- Returns executions whose graph has a node that lost its last lease, or whose deadline has passed, up to $2 of each, without the executions $3.
(SELECT s.execution_id FROM {schema}.node_spent s WHERE s.execution_id <> ALL ($3::uuid[]) ORDER BY s.execution_id, s.node LIMIT $2)
UNION
(SELECT g.execution_id FROM {schema}.execution_graph g
WHERE g.finished_at IS NULL AND g.deadline IS NOT NULL AND g.deadline <= coalesce($1::timestamptz, statement_timestamp())
    AND g.execution_id <> ALL ($3::uuid[])
ORDER BY g.deadline LIMIT $2)
