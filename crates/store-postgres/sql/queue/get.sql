-- The queue.
SELECT * FROM queue WHERE name = $1
