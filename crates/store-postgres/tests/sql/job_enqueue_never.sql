-- A job for never.
SELECT leasehold_job_enqueue('mail', 'send', '{}', run_at => 'infinity')
