-- Notes the crash of process $1 on the open requests of the executions $2, with the error $4. $3: it computed no other input. A crash that is noted already
-- changes nothing. Skips locked requests; each row says how many. Returns one row without a request if none is noted.
WITH suspect AS MATERIALIZED (
    SELECT q.id FROM {schema}.workflow_execution e JOIN {schema}.workflow_execution_queue q ON q.id = e.request_id
    WHERE e.id = ANY ($2) AND e.finished_at IS NULL AND q.execution_id = e.id AND q.finished_at IS NULL
), hit AS MATERIALIZED (
    SELECT q.id FROM {schema}.workflow_execution_queue q
    WHERE q.id = ANY (ARRAY(SELECT s.id FROM suspect s)) AND q.execution_id = ANY ($2) AND q.finished_at IS NULL
    ORDER BY q.id FOR UPDATE SKIP LOCKED
), noted AS (
    UPDATE {schema}.workflow_execution_queue q
    SET crashes = CASE WHEN q.crashed_process = $1 THEN q.crashes ELSE least(coalesce(q.crashes, 0) + 1, 32767) END,
        crashes_alone = CASE WHEN q.crashed_process = $1 THEN q.crashes_alone
            WHEN $3 THEN least(coalesce(q.crashes_alone, 0) + 1, 32767) ELSE 0 END,
        crashed_process = $1,
        last_error = $4
    FROM hit WHERE q.id = hit.id
    RETURNING q.id, q.workspace_id, q.definition_id, q.version_id, q.execution_id, q.status, q.priority, q.params, q.trace_context,
        q.crashes, q.crashes_alone
)
SELECT (SELECT count(*) FROM suspect s WHERE s.id NOT IN (SELECT h.id FROM hit h)) AS locked, n.id, n.workspace_id, n.definition_id, n.version_id,
    n.execution_id, n.status, n.priority, n.params, n.trace_context, n.crashes, n.crashes_alone
FROM (SELECT 1) one LEFT JOIN noted n ON true
