-- Idempotency keys that outlive their request. docs/adr/0024-store-errors-and-kept-keys.md explains the design.

-- The keys of pruned requests, until their window ends.
-- params_hash: SHA-256 of the canonical text of the params, so that a key keeps no payload.
CREATE TABLE kept_key (
    workspace_id BLOB NOT NULL,
    request_id BLOB NOT NULL,
    definition_id BLOB NOT NULL,
    dedupe_until INTEGER NOT NULL,
    key TEXT NOT NULL,
    params_hash BLOB NOT NULL,
    CONSTRAINT kept_key_pkey PRIMARY KEY (workspace_id, key),
    CONSTRAINT kept_key_hash CHECK (length(params_hash) = 32)
) STRICT, WITHOUT ROWID;

CREATE INDEX kept_key_until ON kept_key (dedupe_until);

CREATE TRIGGER request_key_is_free BEFORE INSERT ON workflow_execution_queue
WHEN NEW.idempotency_key IS NOT NULL AND EXISTS (
    SELECT 1 FROM kept_key k
    WHERE k.workspace_id = NEW.workspace_id AND k.key = NEW.idempotency_key AND k.dedupe_until > NEW.created_at)
BEGIN
    SELECT RAISE(ABORT, 'request_idempotency_key');
END;
