-- Enqueues a job with options.
SELECT leasehold.leasehold_job_enqueue('mail', 'send', options => $1)::text AS id
