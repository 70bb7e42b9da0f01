-- Lists entries of action ?3 before ?1, newest first.
SELECT {audit/columns} FROM audit_entry INDEXED BY audit_entry_action
WHERE action = ?3 AND id < ?1 ORDER BY id DESC LIMIT ?2
