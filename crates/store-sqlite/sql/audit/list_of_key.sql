-- Lists entries by key ?3, also of action ?4, before ?1, newest first.
SELECT {audit/columns} FROM audit_entry INDEXED BY audit_entry_key
WHERE key_id = ?3 AND (?4 IS NULL OR action = ?4) AND id < ?1 ORDER BY id DESC LIMIT ?2
