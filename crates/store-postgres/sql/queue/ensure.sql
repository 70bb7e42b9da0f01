-- Creates those of the queues $1 that do not exist.
INSERT INTO {schema}.queue (name, created_at) SELECT n.name, coalesce($2::timestamptz, clock_timestamp())
FROM unnest($1::text[]) AS n (name) WHERE NOT EXISTS (SELECT FROM {schema}.queue q WHERE q.name = n.name)
ORDER BY n.name ON CONFLICT (name) DO NOTHING
