-- Enqueues a job with a deduplication key.
SELECT leasehold.leasehold_job_enqueue('mail', 'send', '{}'::json, dedup_key => $1, dedup_window => $2::text::interval) AS id
