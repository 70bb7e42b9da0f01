-- Disables autovacuum for a frequently written table.
ALTER TABLE request_event SET (autovacuum_enabled = false)
