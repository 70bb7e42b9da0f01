-- Puts requests whose kept execution ended or was deleted back into the line, and marks their workspaces to be examined again. Skips locked
-- rows, and does not wait long for the rows of a graph: claims wait for this.
WITH found AS MATERIALIZED (
    SELECT q.id, q.workspace_id, q.execution_id
    FROM {schema}.workflow_execution_queue q CROSS JOIN (SELECT set_config('lock_timeout', '20ms', true)) AS limits
    WHERE q.due AND q.execution_id IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM {schema}.workflow_execution e WHERE e.id = q.execution_id AND e.finished_at IS NULL)
    ORDER BY q.created_at, q.id LIMIT 1000
    FOR UPDATE OF q SKIP LOCKED
), ended AS MATERIALIZED (
    SELECT e.id, e.request_id FROM {schema}.workflow_execution e
    WHERE e.request_id = ANY (ARRAY(SELECT id FROM found)) AND e.finished_at IS NOT NULL FOR UPDATE SKIP LOCKED
), lost AS MATERIALIZED (
    SELECT f.* FROM found f
    WHERE NOT EXISTS (
        SELECT 1 FROM {schema}.workflow_execution e
        WHERE e.request_id = f.id AND e.finished_at IS NOT NULL AND e.id NOT IN (SELECT id FROM ended))
), cleared AS (
    DELETE FROM {schema}.workflow_execution WHERE id = ANY (ARRAY(SELECT d.id FROM ended d WHERE d.request_id IN (SELECT id FROM lost)))
), lined AS (
    UPDATE {schema}.workflow_execution_queue q SET execution_id = NULL FROM lost WHERE q.id = lost.id
), noted AS (
    INSERT INTO {schema}.workspace_delta (workspace_id, anew) SELECT DISTINCT workspace_id, true FROM lost
)
SELECT id, workspace_id, execution_id FROM lost
