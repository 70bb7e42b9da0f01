-- Definitions and their immutable versions.
-- compatible_from: 2

CREATE TABLE workflow_definition (
    id BLOB NOT NULL,
    workspace_id BLOB NOT NULL,
    name TEXT NOT NULL,
    current_version_id BLOB,
    versions INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    deleted_at INTEGER,
    CONSTRAINT workflow_definition_pkey PRIMARY KEY (id),
    CONSTRAINT workflow_definition_workspace FOREIGN KEY (workspace_id) REFERENCES workspace (id),
    CONSTRAINT workflow_definition_id_length CHECK (length(id) = 16),
    CONSTRAINT workflow_definition_name_length CHECK (length(name) BETWEEN 1 AND 200),
    CONSTRAINT workflow_definition_published CHECK ((current_version_id IS NULL) = (versions = 0))
) STRICT;

CREATE UNIQUE INDEX workflow_definition_name ON workflow_definition (workspace_id, name) WHERE deleted_at IS NULL;
CREATE INDEX workflow_definition_list ON workflow_definition (workspace_id, id);

CREATE TABLE workflow_definition_version (
    id BLOB NOT NULL,
    workspace_id BLOB NOT NULL,
    definition_id BLOB NOT NULL,
    number INTEGER NOT NULL,
    body TEXT NOT NULL,
    params_schema TEXT,
    execution_timeout_ms INTEGER,
    created_at INTEGER NOT NULL,
    CONSTRAINT workflow_definition_version_pkey PRIMARY KEY (id),
    CONSTRAINT workflow_definition_version_number UNIQUE (definition_id, number),
    CONSTRAINT workflow_definition_version_definition FOREIGN KEY (definition_id) REFERENCES workflow_definition (id),
    CONSTRAINT workflow_definition_version_id_length CHECK (length(id) = 16),
    CONSTRAINT workflow_definition_version_body CHECK (json_valid(body)),
    -- Older versions, for example 3.40, take json_valid(NULL) for false.
    CONSTRAINT workflow_definition_version_schema CHECK (params_schema IS NULL OR json_valid(params_schema)),
    CONSTRAINT workflow_definition_version_timeout CHECK (execution_timeout_ms > 0)
) STRICT;

CREATE TRIGGER workflow_definition_version_is_immutable BEFORE UPDATE ON workflow_definition_version
BEGIN
    SELECT RAISE(ABORT, 'workflow_definition_version_is_immutable');
END;
