-- API keys. Only hashes are stored; a revoked key keeps its row.

-- queues: a JSON array of names for a worker key, NULL for others.
CREATE TABLE api_key (
    id BLOB NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    workspace_id BLOB,
    queues TEXT,
    hash BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER,
    CONSTRAINT api_key_pkey PRIMARY KEY (id),
    CONSTRAINT api_key_hash_once UNIQUE (hash),
    CONSTRAINT api_key_of_workspace FOREIGN KEY (workspace_id) REFERENCES workspace (id),
    CONSTRAINT api_key_id_length CHECK (length(id) = 16),
    CONSTRAINT api_key_name_length CHECK (length(name) BETWEEN 1 AND 200),
    CONSTRAINT api_key_kind CHECK (kind IN ('admin', 'workspace', 'worker')),
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
