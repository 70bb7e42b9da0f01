-- Returns the outputs of the nodes $2 of the executions $1, pair by pair.
SELECT n.execution_id, n.node, n.output
FROM unnest($1::uuid[], $2::smallint[]) AS w (execution_id, node)
CROSS JOIN LATERAL (
    SELECT n.* FROM {schema}.execution_node n WHERE n.execution_id = w.execution_id AND n.node = w.node LIMIT 1
) n
WHERE n.output IS NOT NULL
