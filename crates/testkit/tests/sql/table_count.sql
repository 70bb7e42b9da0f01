-- Counts the rows of the table that table_create.sql creates.
SELECT count(*) FROM survivor;
