-- Notes the crash of process $1 on the open requests of the executions $2, with the error $4. $3: it computed no other input. A crash that is noted already
-- changes nothing.
WITH hit AS MATERIALIZED (
    SELECT q.id FROM workflow_execution e JOIN workflow_execution_queue q ON q.id = e.request_id
    WHERE e.id = ANY ($2) AND e.finished_at IS NULL AND q.execution_id = e.id AND q.finished_at IS NULL
    ORDER BY q.id FOR UPDATE OF q
)
UPDATE workflow_execution_queue q
SET crashes = CASE WHEN q.crashed_process = $1 THEN q.crashes ELSE least(coalesce(q.crashes, 0) + 1, 32767) END,
    crashes_alone = CASE WHEN q.crashed_process = $1 THEN q.crashes_alone
        WHEN $3 THEN least(coalesce(q.crashes_alone, 0) + 1, 32767) ELSE 0 END,
    crashed_process = $1,
    last_error = $4
FROM hit WHERE q.id = hit.id
RETURNING q.id, q.workspace_id, q.definition_id, q.version_id, q.execution_id, q.status, q.priority, q.params, q.trace_context,
    q.crashes, q.crashes_alone
