-- Returns the ids of queues by name.
SELECT q.id, q.name FROM {schema}.queue q WHERE q.name = ANY ($1::text[])
