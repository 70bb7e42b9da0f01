-- Marks a workspace as deleted. Its queues become the installation's, and stay shared with the workspace for its running executions.
WITH deleted AS (
    UPDATE {schema}.workspace
    SET deleted_at = coalesce($1::timestamptz, statement_timestamp()),
        updated_at = coalesce($1::timestamptz, statement_timestamp())
    WHERE id = $2 AND deleted_at IS NULL
    RETURNING id, name
), released AS (
    UPDATE {schema}.queue q SET owner_id = NULL FROM deleted d WHERE q.owner_id = d.id RETURNING q.id, d.id AS workspace_id
), kept AS (
    INSERT INTO {schema}.queue_share (queue_id, workspace_id) SELECT r.id, r.workspace_id FROM released r ON CONFLICT DO NOTHING
)
SELECT d.name, {schema}.leasehold_notify() AS notified FROM deleted d
