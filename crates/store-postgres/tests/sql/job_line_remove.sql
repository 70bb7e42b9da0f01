-- Removes the lines of a queue, as a lost commit does.
DELETE FROM leasehold.job_line WHERE queue = $1
