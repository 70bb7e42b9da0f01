-- Reads a queue by id.
SELECT {queue/columns}
FROM queue WHERE id = ?1
