-- Counts jobs that are not in exactly one state table.
SELECT count(*) FROM job
WHERE (SELECT count(*) FROM job_line l WHERE l.queue_id = job.queue_id AND l.priority = job.priority
        AND job.id BETWEEN l.first_job AND l.last_job)
    + (SELECT count(*) FROM job_waiting w WHERE w.job_id = job.id)
    + (SELECT count(*) FROM job_lease p, json_each(p.jobs) e WHERE e.value ->> 0 = job.id)
    + (SELECT count(*) FROM job_end e WHERE e.job_id = job.id) <> 1
