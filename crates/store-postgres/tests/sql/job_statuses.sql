-- Counts the jobs of the view by status.
SELECT status, count(*) AS jobs FROM leasehold.work_queue GROUP BY status ORDER BY status
