-- Returns the statements that add a column to every table, as a newer program may.
SELECT 'ALTER TABLE ' || name || ' ADD COLUMN newer_column TEXT NOT NULL DEFAULT ''newer''' FROM sqlite_schema
WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
