-- Creates those of the queues $1 that do not exist, for the owner $2, and returns them.
INSERT INTO {schema}.queue (name, owner_id, created_at) SELECT n.name, $2, coalesce($3::timestamptz, clock_timestamp())
FROM unnest($1::text[]) AS n (name) ORDER BY n.name ON CONFLICT (name) DO NOTHING RETURNING name
