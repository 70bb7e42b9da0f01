-- Deletes up to ?2 entries that were recorded before ?1, oldest first.
DELETE FROM audit_entry WHERE id IN (SELECT id FROM audit_entry INDEXED BY audit_entry_at WHERE at < ?1 ORDER BY at LIMIT ?2)
