-- Lists the ?1 queues with the most running jobs.
SELECT {queue/columns},
    coalesce((
        SELECT sum(size) FROM job_lease INDEXED BY job_lease_of_queue WHERE queue_id = queue.id), 0) AS running
FROM queue ORDER BY running DESC, name LIMIT ?1
