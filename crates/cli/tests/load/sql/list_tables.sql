-- Lists all tables, without the partitions of the event log and the spare ones.
SELECT tablename FROM pg_tables
WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND tablename !~ '^request_event_[0-9]+$'
