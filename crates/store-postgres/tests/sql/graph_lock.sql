-- Locks a graph.
SELECT execution_id FROM execution_graph WHERE execution_id = $1 FOR UPDATE
