-- API keys and the audit log. docs/adr/0016-key-rights-and-audit.md explains the design.
-- compatible_from: 7

-- Only hashes are stored. Keys are never deleted: a revoked key stays as a record.
-- queues: a JSON array of names for a worker key, NULL for others.
-- successor_id: the key that replaces this one. Not a foreign key: every insert would search for keys that refer to the new one.
CREATE TABLE api_key (
    id BLOB NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    workspace_id BLOB,
    queues TEXT,
    access TEXT NOT NULL DEFAULT 'full',
    payloads TEXT NOT NULL DEFAULT 'shown',
    hash BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    last_used_at INTEGER,
    revoked_at INTEGER,
    successor_id BLOB,
    CONSTRAINT api_key_pkey PRIMARY KEY (id),
    CONSTRAINT api_key_hash_once UNIQUE (hash),
    CONSTRAINT api_key_of_workspace FOREIGN KEY (workspace_id) REFERENCES workspace (id),
    CONSTRAINT api_key_id_length CHECK (length(id) = 16),
    CONSTRAINT api_key_name_length CHECK (length(name) BETWEEN 1 AND 200),
    CONSTRAINT api_key_kind CHECK (kind IN ('admin', 'workspace', 'worker', 'metrics')),
    CONSTRAINT api_key_access CHECK (access IN ('full', 'read')),
    CONSTRAINT api_key_payloads CHECK (payloads IN ('shown', 'hidden')),
    CONSTRAINT api_key_workspace CHECK ((kind = 'workspace') = (workspace_id IS NOT NULL)),
    CONSTRAINT api_key_queues CHECK (
        CASE WHEN kind = 'worker'
            THEN queues IS NOT NULL AND json_valid(queues) AND json_type(queues) = 'array' AND json_array_length(queues) > 0
            ELSE queues IS NULL END
    ),
    CONSTRAINT api_key_hash_length CHECK (length(hash) = 32)
) STRICT;

CREATE INDEX api_key_list ON api_key (workspace_id, id) WHERE workspace_id IS NOT NULL;
CREATE INDEX api_key_admin ON api_key (kind) WHERE kind = 'admin' AND revoked_at IS NULL;

-- Which key made which change. key_id: NULL for a local command. No foreign keys: entries outlive what they name.
CREATE TABLE audit_entry (
    id BLOB NOT NULL,
    at INTEGER NOT NULL,
    key_id BLOB,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    workspace_id BLOB,
    target TEXT NOT NULL,
    details TEXT NOT NULL,
    CONSTRAINT audit_entry_pkey PRIMARY KEY (id),
    CONSTRAINT audit_entry_id_length CHECK (length(id) = 16),
    CONSTRAINT audit_entry_action_length CHECK (length(action) BETWEEN 1 AND 64),
    CONSTRAINT audit_entry_details CHECK (json_valid(details))
) STRICT, WITHOUT ROWID;

CREATE INDEX audit_entry_at ON audit_entry (at);
CREATE INDEX audit_entry_workspace ON audit_entry (workspace_id, id) WHERE workspace_id IS NOT NULL;
CREATE INDEX audit_entry_key ON audit_entry (key_id, id) WHERE key_id IS NOT NULL;
CREATE INDEX audit_entry_action ON audit_entry (action, id);
