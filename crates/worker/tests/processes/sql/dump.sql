-- The rows of all job tables as text, and the number of recorded lease changes.
SELECT 'end ' || e::text AS row FROM job_end e
UNION ALL SELECT 'lease ' || l::text FROM job_lease l
UNION ALL SELECT 'waiting ' || w::text FROM job_waiting w
UNION ALL SELECT 'note ' || n::text FROM job_note n
UNION ALL SELECT 'changes ' || count(*) FROM test_change
ORDER BY 1
