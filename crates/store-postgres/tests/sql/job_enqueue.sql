-- A job by the function that others call.
SELECT leasehold_job_enqueue('mail', 'send', $1::json) AS id
