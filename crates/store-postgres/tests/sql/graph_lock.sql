-- Locks a graph.
SELECT execution_id FROM leasehold.execution_graph WHERE execution_id = $1 FOR UPDATE
