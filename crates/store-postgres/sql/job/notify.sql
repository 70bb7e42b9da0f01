-- Notifies waiting workers.
SELECT leasehold_job_notify() AS notified
