-- Definitions and their immutable versions.
-- compatible_from: 2

CREATE TABLE {schema}.workflow_definition (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    name text NOT NULL,
    current_version_id uuid,
    versions integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    deleted_at timestamptz,
    CONSTRAINT workflow_definition_pkey PRIMARY KEY (id),
    CONSTRAINT workflow_definition_workspace FOREIGN KEY (workspace_id) REFERENCES {schema}.workspace (id),
    CONSTRAINT workflow_definition_name_length CHECK (length(name) BETWEEN 1 AND 200),
    CONSTRAINT workflow_definition_published CHECK ((current_version_id IS NULL) = (versions = 0))
);

CREATE UNIQUE INDEX workflow_definition_name ON {schema}.workflow_definition (workspace_id, name) WHERE deleted_at IS NULL;
CREATE INDEX workflow_definition_list ON {schema}.workflow_definition (workspace_id, id) WHERE deleted_at IS NULL;

CREATE TABLE {schema}.workflow_definition_version (
    id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    definition_id uuid NOT NULL,
    number integer NOT NULL,
    body jsonb NOT NULL,
    params_schema jsonb,
    execution_timeout_ms bigint,
    created_at timestamptz NOT NULL,
    CONSTRAINT workflow_definition_version_pkey PRIMARY KEY (id),
    CONSTRAINT workflow_definition_version_number UNIQUE (definition_id, number),
    CONSTRAINT workflow_definition_version_definition FOREIGN KEY (definition_id) REFERENCES {schema}.workflow_definition (id),
    CONSTRAINT workflow_definition_version_timeout CHECK (execution_timeout_ms > 0)
);

CREATE TRIGGER workflow_definition_version_is_immutable BEFORE UPDATE ON {schema}.workflow_definition_version
    FOR EACH ROW EXECUTE FUNCTION {schema}.leasehold_refuse('workflow_definition_version_is_immutable');
