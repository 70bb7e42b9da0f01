-- Whether any keys or notes exist, so that ending a job can skip looking for its own.
SELECT EXISTS (SELECT 1 FROM job_key), EXISTS (SELECT 1 FROM job_note)
