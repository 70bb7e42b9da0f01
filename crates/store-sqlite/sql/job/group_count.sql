-- Counts the running jobs of each group.
INSERT INTO job_group (queue_id, group_name, turn, has_jobs, ready, running)
SELECT ?1, coalesce(j.group_name, ''), 0, 0, 0, count(*)
FROM job_lease l INDEXED BY job_lease_of_queue, json_each(l.jobs) e CROSS JOIN job j ON j.id = e.value ->> 0
WHERE l.queue_id = ?1 GROUP BY coalesce(j.group_name, '')
ON CONFLICT (queue_id, group_name) DO UPDATE SET running = excluded.running
