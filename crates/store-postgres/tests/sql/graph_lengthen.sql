-- Gives the state of an execution's graph one node more than its version has.
UPDATE leasehold.execution_graph SET state = state || 'w' WHERE execution_id = $1
