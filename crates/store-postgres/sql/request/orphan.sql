-- Puts requests whose kept execution is gone back into the line, and has their workspaces looked at anew.
WITH lost AS (
    UPDATE workflow_execution_queue q SET execution_id = NULL
    WHERE q.due AND q.execution_id IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM workflow_execution e WHERE e.id = q.execution_id AND e.finished_at IS NULL)
    RETURNING q.id, q.workspace_id, q.execution_id
), noted AS (
    INSERT INTO workspace_delta (workspace_id, anew) SELECT DISTINCT workspace_id, true FROM lost
)
SELECT id FROM lost
