-- Wakes whoever waits for jobs.
SELECT leasehold_job_wake() AS notified
