-- Access, payloads, expiry, last use and rotation of keys, and the audit log. docs/adr/0016-key-rights-and-audit.md explains the design.

-- successor_id: the key that replaces this one. Keys are never deleted.
ALTER TABLE api_key
    ADD COLUMN access text NOT NULL DEFAULT 'full',
    ADD COLUMN payloads text NOT NULL DEFAULT 'shown',
    ADD COLUMN expires_at timestamptz,
    ADD COLUMN last_used_at timestamptz,
    ADD COLUMN successor_id uuid,
    DROP CONSTRAINT api_key_kind,
    ADD CONSTRAINT api_key_kind CHECK (kind IN ('admin', 'workspace', 'worker', 'metrics')),
    ADD CONSTRAINT api_key_access CHECK (access IN ('full', 'read')),
    ADD CONSTRAINT api_key_payloads CHECK (payloads IN ('shown', 'hidden'));

-- Which key made which change. key_id: NULL for a local command. No foreign keys: entries outlive what they name.
CREATE TABLE audit_entry (
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

CREATE INDEX audit_entry_at ON audit_entry (at);
CREATE INDEX audit_entry_workspace ON audit_entry (workspace_id, id) WHERE workspace_id IS NOT NULL;
CREATE INDEX audit_entry_key ON audit_entry (key_id, id) WHERE key_id IS NOT NULL;
CREATE INDEX audit_entry_action ON audit_entry (action, id);
