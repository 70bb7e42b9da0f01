-- Whether there are keys and notes at all, so that those of what ended need not be looked for.
SELECT EXISTS (SELECT 1 FROM job_key), EXISTS (SELECT 1 FROM job_note)
