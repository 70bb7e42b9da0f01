-- Charges $2 bytes of the execution $1 to its open request and to its workspace.
WITH charged AS (
    UPDATE {schema}.workflow_execution_queue q SET execution_bytes = coalesce(q.execution_bytes, 0) + $2::bigint
    FROM {schema}.workflow_execution e
    WHERE e.id = $1 AND q.id = e.request_id AND q.execution_id = e.id AND q.finished_at IS NULL
    RETURNING q.workspace_id
)
INSERT INTO {schema}.workspace_delta (workspace_id, open_bytes) SELECT workspace_id, $2 FROM charged
