-- Ends execution $2, which no open request refers to, with the status $3 at $1. This frees its slot.
UPDATE {schema}.workflow_execution e
SET status = $3, finished_at = coalesce($1::timestamptz, statement_timestamp()),
    error = 'its request had ended, or had another execution'
WHERE e.id = $2 AND e.status = 'RUNNING' AND NOT EXISTS (
    SELECT 1 FROM {schema}.workflow_execution_queue q
    WHERE q.id = e.request_id AND q.execution_id = e.id AND q.status IN ('PENDING', 'CLAIMED', 'DISPATCHED'))
RETURNING e.workspace_id
