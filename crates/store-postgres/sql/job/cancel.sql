-- Cancels a queued job.
SELECT {schema}.leasehold_job_cancel($1, $2) AS outcome
