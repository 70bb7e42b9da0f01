-- Enqueues a job with a function that takes one more argument than leasehold_job_enqueue.
SELECT leasehold_job_enqueue_with_note('mail', 'welcome', note => 'new') AS id
