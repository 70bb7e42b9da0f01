-- Enqueues a job in the queue $1.
SELECT leasehold.leasehold_job_enqueue($1, 'send') AS id
