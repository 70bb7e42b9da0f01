-- Returns the output of a node.
SELECT output FROM execution_node WHERE execution_id = $1 AND node = $2
