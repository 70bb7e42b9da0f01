-- Reads the attempts of an ended job.
SELECT attempts FROM job_end WHERE job_id = ?1
