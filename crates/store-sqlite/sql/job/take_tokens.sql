-- Allocates ?1 fencing tokens and returns the last one.
UPDATE job_number SET last_token = last_token + ?1 WHERE id = 1 RETURNING last_token
