-- Reads the first groups of the round of a queue, and how many more of its jobs may run.
SELECT g.group_name, CASE WHEN q.group_limit IS NULL THEN NULL ELSE max(q.group_limit - g.running, 0) END AS room
FROM job_group g INDEXED BY job_group_round CROSS JOIN queue q ON q.id = g.queue_id
WHERE g.queue_id = ?1 AND g.ready = 1 ORDER BY g.turn LIMIT ?2
