-- Locks a random row of a table, if one is free, and returns how many were locked.
SELECT count(*) FROM (
    SELECT 1 FROM {table} WHERE {condition} ORDER BY random() LIMIT 1 FOR UPDATE SKIP LOCKED
) AS locked
