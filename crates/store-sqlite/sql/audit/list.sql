-- Lists entries before ?1, newest first.
SELECT {audit/columns} FROM audit_entry WHERE id < ?1 ORDER BY id DESC LIMIT ?2
