-- Bytes of all definitions and versions of a workspace, also of deleted ones: nothing deletes them from the store. docs/adr/0017-quotas-in-the-store.md
-- explains the design.

CREATE TABLE workspace_catalog (
    workspace_id uuid NOT NULL,
    bytes bigint NOT NULL,
    CONSTRAINT workspace_catalog_pkey PRIMARY KEY (workspace_id),
    CONSTRAINT workspace_catalog_workspace FOREIGN KEY (workspace_id) REFERENCES workspace (id),
    CONSTRAINT workspace_catalog_bytes CHECK (bytes >= 0)
);

-- Existing versions count as they are stored, which is what they take on the disk.
INSERT INTO workspace_catalog (workspace_id, bytes)
SELECT d.workspace_id, sum(1024 + coalesce(v.bytes, 0))::bigint
FROM workflow_definition d LEFT JOIN (
    SELECT definition_id, sum(1024 + pg_column_size(body) + coalesce(pg_column_size(params_schema), 0)) AS bytes
    FROM workflow_definition_version GROUP BY definition_id
) v ON v.definition_id = d.id
GROUP BY d.workspace_id;
