-- Adds a column of the next program to the table {table}.
ALTER TABLE {table} ADD COLUMN next_column text NOT NULL DEFAULT 'next'
