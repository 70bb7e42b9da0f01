-- The queue of a name.
SELECT {queue/columns}
FROM queue WHERE name = ?1
