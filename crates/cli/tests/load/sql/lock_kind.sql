-- Locks the rows of one table that are free.
SELECT count(*) AS locked FROM (SELECT 1 FROM {table} WHERE {condition} FOR UPDATE SKIP LOCKED) AS rows
