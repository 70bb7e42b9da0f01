-- Dead rows of a table that is written often stay.
ALTER TABLE request_event SET (autovacuum_enabled = false)
