-- Counts all jobs of a queue, and the failed ones. Reads only indexes.
SELECT
    (SELECT count(*) FROM job INDEXED BY job_of_queue WHERE queue_id = ?1) AS jobs,
    (SELECT count(*) FROM job_end INDEXED BY job_end_of_failed WHERE queue_id = ?1 AND failed = 1) AS failed
