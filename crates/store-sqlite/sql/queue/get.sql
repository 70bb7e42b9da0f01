-- The queue of an id.
SELECT {queue/columns}
FROM queue WHERE id = ?1
