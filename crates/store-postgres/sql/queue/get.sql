-- Returns a queue by name.
SELECT {queue/columns}
FROM queue WHERE name = $1
