-- Creates the extension that counts statements.
CREATE EXTENSION IF NOT EXISTS pg_stat_statements
