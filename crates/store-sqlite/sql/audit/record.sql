-- Adds an entry to the audit log.
INSERT INTO audit_entry (id, at, key_id, actor, action, workspace_id, target, details)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
