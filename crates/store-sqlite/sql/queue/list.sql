-- Lists a page of queues, by name.
SELECT {queue/columns}
FROM queue WHERE name > ?1 ORDER BY name LIMIT ?2
