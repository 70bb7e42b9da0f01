-- Numbers the slots of a workspace from 0 without a gap.
UPDATE workflow_execution SET slot = n.place - 1
FROM (
    SELECT id, row_number() OVER (ORDER BY slot) AS place FROM workflow_execution
    WHERE workspace_id = ?1 AND status = 'RUNNING'
) n
WHERE workflow_execution.id = n.id AND workflow_execution.slot <> n.place - 1
