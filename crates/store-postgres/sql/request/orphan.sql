-- Puts requests whose kept execution ended or was deleted back into the line, and marks their workspaces to be examined again.
WITH lost AS MATERIALIZED (
    SELECT q.id, q.workspace_id, q.execution_id FROM workflow_execution_queue q
    WHERE q.due AND q.execution_id IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM workflow_execution e WHERE e.id = q.execution_id AND e.finished_at IS NULL)
    ORDER BY q.created_at, q.id LIMIT 1000
    FOR UPDATE OF q SKIP LOCKED
), cleared AS (
    DELETE FROM workflow_execution WHERE request_id = ANY (ARRAY(SELECT id FROM lost)) AND finished_at IS NOT NULL
), lined AS (
    UPDATE workflow_execution_queue q SET execution_id = NULL FROM lost WHERE q.id = lost.id
), noted AS (
    INSERT INTO workspace_delta (workspace_id, anew) SELECT DISTINCT workspace_id, true FROM lost
)
SELECT id, workspace_id, execution_id FROM lost
