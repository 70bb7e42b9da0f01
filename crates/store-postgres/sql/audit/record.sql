-- Adds an entry to the audit log.
INSERT INTO {schema}.audit_entry (id, at, key_id, actor, action, workspace_id, target, details)
VALUES ($2, coalesce($1::timestamptz, statement_timestamp()), $3, $4, $5, $6, $7, $8)
