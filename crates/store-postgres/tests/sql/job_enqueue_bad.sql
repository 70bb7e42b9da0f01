-- Enqueues a job with an invalid payload, attempts or timeout.
SELECT leasehold.leasehold_job_enqueue('mail', 'send', $1::text::json, max_attempts => $2, timeout => $3::text::interval) AS id
