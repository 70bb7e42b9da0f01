-- Returns which of the executions exist, whether they have ended, and whether their request refers to them.
SELECT e.id, e.finished_at IS NOT NULL AS ended,
    EXISTS (SELECT 1 FROM {schema}.workflow_execution_queue q WHERE q.id = e.request_id AND q.execution_id = e.id) AS is_wanted
FROM {schema}.workflow_execution e WHERE e.id = ANY ($1)
