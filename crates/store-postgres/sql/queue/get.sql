-- The queue.
SELECT {queue/columns}
FROM queue WHERE name = $1
