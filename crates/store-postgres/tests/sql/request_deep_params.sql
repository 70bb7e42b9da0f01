-- Params nested deeper than a program reads.
UPDATE workflow_execution_queue SET params = (repeat('[', 500) || repeat(']', 500))::jsonb WHERE id = $1
