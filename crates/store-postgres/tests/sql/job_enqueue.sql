-- Enqueues a job with the SQL function.
SELECT leasehold.leasehold_job_enqueue('mail', 'send', $1::json) AS id
