-- Changes a request; `{change}` is the SET clause.
UPDATE leasehold.workflow_execution_queue SET {change} WHERE id = $1
