-- Locks the requests of those executions of $1 that have not ended, except those that are locked.
SELECT q.id FROM {schema}.workflow_execution e JOIN {schema}.workflow_execution_queue q ON q.id = e.request_id
WHERE e.id = ANY ($1) AND e.finished_at IS NULL ORDER BY q.id FOR UPDATE OF q SKIP LOCKED
