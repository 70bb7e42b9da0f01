-- Enqueues a job with options.
SELECT leasehold_job_enqueue('mail', 'send', options => $1)::text AS id
