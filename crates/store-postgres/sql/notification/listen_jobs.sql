-- Subscribes to notifications about jobs.
LISTEN leasehold_job
