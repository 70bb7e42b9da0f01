-- Creates those lines of queues that do not exist.
INSERT INTO {schema}.job_line (queue_id, priority, queue) SELECT n.queue_id, n.priority, q.name
FROM unnest($1::integer[], $2::smallint[]) AS n (queue_id, priority) JOIN {schema}.queue q ON q.id = n.queue_id
WHERE NOT EXISTS (SELECT FROM {schema}.job_line l WHERE l.queue_id = n.queue_id AND l.priority = n.priority)
ORDER BY n.queue_id, n.priority ON CONFLICT DO NOTHING
