-- Ends an execution that its request no longer refers to; a trigger frees its slot.
UPDATE workflow_execution
SET status = ?2, finished_at = ?3, error = 'its request had ended, or had another execution'
WHERE id = ?1 AND status = 'RUNNING' AND NOT EXISTS (
    SELECT 1 FROM workflow_execution_queue q
    WHERE q.id = workflow_execution.request_id AND q.execution_id = workflow_execution.id
        AND q.status IN ('PENDING', 'CLAIMED', 'DISPATCHED'))
