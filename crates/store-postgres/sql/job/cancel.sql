-- Cancels a queued job.
SELECT leasehold_job_cancel($1, $2) AS outcome
