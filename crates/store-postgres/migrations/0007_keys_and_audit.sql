-- API keys and the audit log. docs/adr/0016-key-rights-and-audit.md explains the design.
-- compatible_from: 7

-- Only hashes are stored. Keys are never deleted: a revoked key stays as a record. successor_id: the key that replaces this one.
CREATE TABLE {schema}.api_key (
    id uuid NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    workspace_id uuid,
    queues text[],
    access text NOT NULL DEFAULT 'full',
    payloads text NOT NULL DEFAULT 'shown',
    hash bytea NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    last_used_at timestamptz,
    revoked_at timestamptz,
    successor_id uuid,
    CONSTRAINT api_key_pkey PRIMARY KEY (id),
    CONSTRAINT api_key_hash_once UNIQUE (hash),
    CONSTRAINT api_key_of_workspace FOREIGN KEY (workspace_id) REFERENCES {schema}.workspace (id),
    CONSTRAINT api_key_name_length CHECK (length(name) BETWEEN 1 AND 200),
    CONSTRAINT api_key_kind CHECK (kind IN ('admin', 'workspace', 'worker', 'metrics')),
    CONSTRAINT api_key_access CHECK (access IN ('full', 'read')),
    CONSTRAINT api_key_payloads CHECK (payloads IN ('shown', 'hidden')),
    CONSTRAINT api_key_workspace CHECK ((kind = 'workspace') = (workspace_id IS NOT NULL)),
    CONSTRAINT api_key_queues CHECK (
        CASE WHEN kind = 'worker'
            THEN queues IS NOT NULL AND cardinality(queues) > 0 AND array_position(queues, NULL) IS NULL
            ELSE queues IS NULL END
    ),
    CONSTRAINT api_key_hash_length CHECK (octet_length(hash) = 32)
);

CREATE INDEX api_key_list ON {schema}.api_key (workspace_id, id) WHERE workspace_id IS NOT NULL;
CREATE INDEX api_key_admin ON {schema}.api_key (kind) WHERE kind = 'admin' AND revoked_at IS NULL;

-- Which key made which change. key_id: NULL for a local command. No foreign keys: entries outlive what they name.
CREATE TABLE {schema}.audit_entry (
    id uuid NOT NULL,
    at timestamptz NOT NULL,
    key_id uuid,
    actor text NOT NULL,
    action text NOT NULL,
    workspace_id uuid,
    target text NOT NULL,
    details jsonb NOT NULL,
    CONSTRAINT audit_entry_pkey PRIMARY KEY (id),
    CONSTRAINT audit_entry_action_length CHECK (length(action) BETWEEN 1 AND 64)
);

CREATE INDEX audit_entry_at ON {schema}.audit_entry (at);
CREATE INDEX audit_entry_workspace ON {schema}.audit_entry (workspace_id, id) WHERE workspace_id IS NOT NULL;
CREATE INDEX audit_entry_key ON {schema}.audit_entry (key_id, id) WHERE key_id IS NOT NULL;
CREATE INDEX audit_entry_action ON {schema}.audit_entry (action, id);
