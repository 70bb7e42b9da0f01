-- Returns the outputs of the nodes $2 of execution $1, up to the first one with which they have more than $3 bytes.
SELECT n.node, n.output
FROM (
    SELECT n.node, n.output, sum(octet_length(n.output::text)) OVER (ORDER BY n.node) - octet_length(n.output::text) AS before
    FROM {schema}.execution_node n WHERE n.execution_id = $1 AND n.node = ANY ($2::smallint[]) AND n.output IS NOT NULL
) n
WHERE n.before <= $3::bigint
