-- Enqueues a job with an infinite run_at.
SELECT leasehold.leasehold_job_enqueue('mail', 'send', '{}', run_at => 'infinity')
