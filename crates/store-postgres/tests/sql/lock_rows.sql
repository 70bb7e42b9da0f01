-- Locks rows of one table.
SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {condition} FOR UPDATE) AS locked
