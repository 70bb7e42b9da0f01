-- What the nodes ($1, $2) came to.
SELECT n.execution_id, n.node, n.output
FROM unnest($1::uuid[], $2::smallint[]) AS a (execution_id, node)
CROSS JOIN LATERAL (
    SELECT n.* FROM execution_node n WHERE n.execution_id = a.execution_id AND n.node = a.node LIMIT 1
) n
WHERE n.output IS NOT NULL
