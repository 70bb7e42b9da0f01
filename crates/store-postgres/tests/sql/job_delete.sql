-- Deletes the row of a job and nothing else, as an operator may.
DELETE FROM leasehold.job WHERE id = $1
