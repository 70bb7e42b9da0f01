-- Records how a job ended.
INSERT INTO job_end (job_id, queue_id, failed, attempts, token, run_at, started_at, finished_at, worker, result, last_error)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
