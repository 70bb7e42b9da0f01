-- Locks rows of one table.
SELECT count(*) AS locked FROM (SELECT 1 FROM {table} WHERE {condition} FOR UPDATE) AS rows
