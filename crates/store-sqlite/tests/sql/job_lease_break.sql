-- Corrupts every page with one lease.
UPDATE job_lease SET jobs = '[1]' WHERE size = 1
