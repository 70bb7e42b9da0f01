-- Lists entries of workspace ?3, also by key ?4 and of action ?5, before ?1, newest first.
SELECT {audit/columns} FROM audit_entry INDEXED BY audit_entry_workspace
WHERE workspace_id = ?3 AND (?4 IS NULL OR key_id = ?4) AND (?5 IS NULL OR action = ?5) AND id < ?1
ORDER BY id DESC LIMIT ?2
