-- API keys. Only hashes are stored; a revoked key stays as a record.

CREATE TABLE api_key (
    id uuid NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    workspace_id uuid,
    queues text[],
    hash bytea NOT NULL,
    created_at timestamptz NOT NULL,
    revoked_at timestamptz,
    CONSTRAINT api_key_pkey PRIMARY KEY (id),
    CONSTRAINT api_key_hash_once UNIQUE (hash),
    CONSTRAINT api_key_of_workspace FOREIGN KEY (workspace_id) REFERENCES workspace (id),
    CONSTRAINT api_key_name_length CHECK (length(name) BETWEEN 1 AND 200),
    CONSTRAINT api_key_kind CHECK (kind IN ('admin', 'workspace', 'worker')),
    CONSTRAINT api_key_workspace CHECK ((kind = 'workspace') = (workspace_id IS NOT NULL)),
    CONSTRAINT api_key_queues CHECK (
        CASE WHEN kind = 'worker'
            THEN queues IS NOT NULL AND cardinality(queues) > 0 AND array_position(queues, NULL) IS NULL
            ELSE queues IS NULL END
    ),
    CONSTRAINT api_key_hash_length CHECK (octet_length(hash) = 32)
);

CREATE INDEX api_key_list ON api_key (workspace_id, id) WHERE workspace_id IS NOT NULL;
CREATE INDEX api_key_admin ON api_key (kind) WHERE kind = 'admin' AND revoked_at IS NULL;
