-- Returns the outputs of the nodes $2 of execution $1.
SELECT n.node, n.output
FROM execution_node n WHERE n.execution_id = $1 AND n.node = ANY ($2::smallint[]) AND n.output IS NOT NULL
