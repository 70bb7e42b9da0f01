-- Numbers the slots of a workspace from far beyond those in use, so that they can be numbered anew from 0.
UPDATE workflow_execution
SET slot = n.place + (SELECT max(coalesce(max(slot), 0), count(*)) FROM workflow_execution WHERE workspace_id = ?1 AND status = 'RUNNING')
FROM (
    SELECT id, row_number() OVER (ORDER BY admission) AS place FROM workflow_execution
    WHERE workspace_id = ?1 AND status = 'RUNNING'
) n
WHERE workflow_execution.id = n.id
