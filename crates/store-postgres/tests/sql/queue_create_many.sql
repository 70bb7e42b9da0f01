-- Enqueues a job into each of $1 new queues whose names begin with $2, in one transaction.
SELECT leasehold.leasehold_job_enqueue($2::text || n::text, 'send') FROM generate_series(1, $1::integer) AS n
