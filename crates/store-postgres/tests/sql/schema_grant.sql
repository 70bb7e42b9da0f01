-- Grants the use of the schema.
GRANT USAGE ON SCHEMA leasehold TO pg_read_all_stats
