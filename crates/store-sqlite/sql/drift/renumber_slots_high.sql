-- Numbers the slots of a workspace above all numbers in use, so that they can be renumbered from 0.
UPDATE workflow_execution
SET slot = n.position + (SELECT max(coalesce(max(slot), 0), count(*)) FROM workflow_execution WHERE workspace_id = ?1 AND status = 'RUNNING')
FROM (
    SELECT id, row_number() OVER (ORDER BY admission) AS position FROM workflow_execution
    WHERE workspace_id = ?1 AND status = 'RUNNING'
) n
WHERE workflow_execution.id = n.id
