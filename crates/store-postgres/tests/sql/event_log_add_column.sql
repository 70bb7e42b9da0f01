-- Adds a column to the event log but not to its spare tables.
ALTER TABLE leasehold.request_event ADD COLUMN note text
