-- Bytes of all definitions and versions of a workspace, also of deleted ones: nothing deletes them from the store.

CREATE TABLE workspace_catalog (
    workspace_id BLOB NOT NULL,
    bytes INTEGER NOT NULL,
    CONSTRAINT workspace_catalog_pkey PRIMARY KEY (workspace_id),
    CONSTRAINT workspace_catalog_workspace FOREIGN KEY (workspace_id) REFERENCES workspace (id),
    CONSTRAINT workspace_catalog_bytes CHECK (bytes >= 0)
) STRICT;

INSERT INTO workspace_catalog (workspace_id, bytes)
SELECT d.workspace_id, sum(1024 + coalesce(v.bytes, 0))
FROM workflow_definition d LEFT JOIN (
    SELECT definition_id, sum(1024 + octet_length(body) + coalesce(octet_length(params_schema), 0)) AS bytes
    FROM workflow_definition_version GROUP BY definition_id
) v ON v.definition_id = d.id
GROUP BY d.workspace_id;
