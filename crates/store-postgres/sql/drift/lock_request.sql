-- Locks request $1 if it is CLAIMED or DISPATCHED and its execution is not RUNNING, and returns whether the execution exists.
SELECT EXISTS (SELECT 1 FROM {schema}.workflow_execution e WHERE e.id = q.execution_id) AS has_execution
FROM {schema}.workflow_execution_queue q
WHERE q.id = $1 AND q.status IN ('CLAIMED', 'DISPATCHED') AND NOT EXISTS (
    SELECT 1 FROM {schema}.workflow_execution e WHERE e.id = q.execution_id AND e.status = 'RUNNING')
FOR UPDATE OF q
