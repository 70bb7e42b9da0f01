-- Sets params that are nested too deep to parse.
UPDATE leasehold.workflow_execution_queue SET params = (repeat('[', 500) || repeat(']', 500))::jsonb WHERE id = $1
