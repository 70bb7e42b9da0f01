-- Enqueues a job with every argument.
SELECT leasehold.leasehold_job_enqueue('mail', 'send', '{"n": 1}', 7, $1, NULL, NULL, 3, interval '90 seconds', 'trace') AS id
