-- Numbers the slots of a workspace from 0 without a gap.
UPDATE workflow_execution SET slot = n.position - 1
FROM (
    SELECT id, row_number() OVER (ORDER BY slot) AS position FROM workflow_execution
    WHERE workspace_id = ?1 AND status = 'RUNNING'
) n
WHERE workflow_execution.id = n.id AND workflow_execution.slot <> n.position - 1
