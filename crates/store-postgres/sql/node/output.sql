-- Returns the output of a node.
SELECT output FROM {schema}.execution_node WHERE execution_id = $1 AND node = $2
