-- Notifies waiting workers.
SELECT {schema}.leasehold_job_notify() AS notified
