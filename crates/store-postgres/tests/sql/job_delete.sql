-- Deletes the row of a job and nothing else, as an operator may.
DELETE FROM job WHERE id = $1
