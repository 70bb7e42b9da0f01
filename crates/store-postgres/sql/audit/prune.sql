-- Deletes up to $2 entries that were recorded before $1, oldest first.
WITH old AS MATERIALIZED (
    SELECT id FROM {schema}.audit_entry WHERE at < $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED
)
DELETE FROM {schema}.audit_entry USING old WHERE audit_entry.id = old.id
