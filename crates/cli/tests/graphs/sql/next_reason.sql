-- Gives a failed request a reason that only the next program knows.
UPDATE workflow_execution_queue SET failure_reason = 'evicted_by_policy' WHERE id = $1
