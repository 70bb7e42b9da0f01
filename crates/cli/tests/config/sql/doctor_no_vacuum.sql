-- Turns autovacuum off for a partition of the event log.
ALTER TABLE request_event_0 SET (autovacuum_enabled = false)
