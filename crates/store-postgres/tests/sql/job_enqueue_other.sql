-- Enqueues a job of another queue.
SELECT leasehold.leasehold_job_enqueue('other', 'send')
