-- Idempotency keys that outlive their request, and a replica identity for every table. docs/adr/0024-store-errors-and-kept-keys.md explains
-- both.

-- The keys of pruned requests, until their window ends.
-- params_hash: SHA-256 of the text of the params, so that a key keeps no payload.
CREATE TABLE kept_key (
    workspace_id uuid NOT NULL,
    request_id uuid NOT NULL,
    definition_id uuid NOT NULL,
    dedupe_until timestamptz NOT NULL,
    key text NOT NULL,
    params_hash bytea NOT NULL,
    CONSTRAINT kept_key_pkey PRIMARY KEY (workspace_id, key),
    CONSTRAINT kept_key_hash CHECK (octet_length(params_hash) = 32)
);

CREATE INDEX kept_key_until ON kept_key (dedupe_until);

CREATE TRIGGER request_key_is_free AFTER INSERT ON workflow_execution_queue
    FOR EACH ROW WHEN (NEW.idempotency_key IS NOT NULL)
    EXECUTE FUNCTION leasehold_check_kept_key();

-- The only table without a primary key. A publication of all tables would reject the deletions of every fold. FULL costs nothing unless the
-- rows are replicated; a key would cost an index entry for each row.
ALTER TABLE workspace_delta REPLICA IDENTITY FULL;
