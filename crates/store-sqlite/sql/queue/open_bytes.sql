-- Reads the bytes of at most ?3 open jobs of a queue: their payloads and progress, and ?2 for each.
SELECT coalesce(sum(bytes), 0) AS bytes
FROM (
    SELECT length(CAST(j.payload AS BLOB)) + ?2 AS bytes
    FROM job_line l CROSS JOIN job j ON j.id BETWEEN l.first_job AND l.last_job WHERE l.queue_id = ?1
    UNION ALL
    SELECT length(CAST(j.payload AS BLOB)) + coalesce(length(CAST(n.progress AS BLOB)), 0) + ?2
    FROM job_waiting w INDEXED BY job_waiting_line CROSS JOIN job j ON j.id = w.job_id LEFT JOIN job_note n ON n.job_id = j.id
    WHERE w.queue_id = ?1 AND w.ready = 1
    UNION ALL
    SELECT length(CAST(j.payload AS BLOB)) + coalesce(length(CAST(n.progress AS BLOB)), 0) + ?2
    FROM job_waiting w INDEXED BY job_waiting_due CROSS JOIN job j ON j.id = w.job_id LEFT JOIN job_note n ON n.job_id = j.id
    WHERE w.queue_id = ?1 AND w.ready = 0
    UNION ALL
    SELECT length(CAST(j.payload AS BLOB)) + coalesce(length(CAST(n.progress AS BLOB)), 0) + ?2
    FROM job_lease l INDEXED BY job_lease_of_queue, json_each(l.jobs) e CROSS JOIN job j ON j.id = e.value ->> 0
    LEFT JOIN job_note n ON n.job_id = j.id
    WHERE l.queue_id = ?1
    LIMIT ?3
)
