-- Lets this database see what the server counts of statements.
CREATE EXTENSION IF NOT EXISTS pg_stat_statements
