-- Returns a queue by name.
SELECT {queue/columns}
FROM {schema}.queue WHERE name = $1
