-- Takes the next fencing tokens, as many as asked, and says the last of them.
UPDATE job_number SET last_token = last_token + ?1 WHERE id = 1 RETURNING last_token
