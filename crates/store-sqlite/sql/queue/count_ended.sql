-- Counts the completed and the failed jobs of a queue.
SELECT coalesce(sum(NOT failed), 0) AS completed, coalesce(sum(failed), 0) AS failed FROM job_end WHERE queue_id = ?1
