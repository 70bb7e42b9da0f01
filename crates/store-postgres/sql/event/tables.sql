-- Attaches, creates and drops tables of the event log's partitions. Returns the statements that detach others.
SELECT t.detach FROM {schema}.leasehold_event_tables() t
