-- The columns of an entry of the audit log.
id, at, key_id, actor, action, workspace_id, target, details
