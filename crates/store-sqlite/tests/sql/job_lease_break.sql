-- Makes nonsense of every page that holds one lease.
UPDATE job_lease SET jobs = '[1]' WHERE size = 1
