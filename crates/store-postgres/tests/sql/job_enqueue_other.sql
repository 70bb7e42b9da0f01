-- Enqueues a job of another queue.
SELECT leasehold_job_enqueue('other', 'send')
