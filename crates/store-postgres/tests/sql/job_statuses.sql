-- How many jobs the view shows in each status.
SELECT status, count(*) AS jobs FROM work_queue GROUP BY status ORDER BY status
