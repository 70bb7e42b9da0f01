-- Lists queues by name.
SELECT {queue/columns}
FROM {schema}.queue WHERE name COLLATE "C" > $1 ORDER BY name COLLATE "C" LIMIT $2
