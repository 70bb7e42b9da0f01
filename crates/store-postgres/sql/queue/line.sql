-- Creates those lines of queues that do not exist.
INSERT INTO {schema}.job_line (queue_id, priority) SELECT n.queue_id, n.priority
FROM unnest($1::integer[], $2::smallint[]) AS n (queue_id, priority)
WHERE NOT EXISTS (SELECT FROM {schema}.job_line l WHERE l.queue_id = n.queue_id AND l.priority = n.priority)
ORDER BY n.queue_id, n.priority ON CONFLICT DO NOTHING
