-- Locks a random row of one table, if one is free, and returns how many were locked.
SELECT count(*) AS locked FROM (
    SELECT 1 FROM {table} WHERE {condition} ORDER BY random() LIMIT 1 FOR UPDATE SKIP LOCKED) AS rows
