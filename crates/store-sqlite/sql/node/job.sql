-- Reads a node's job.
SELECT job_id FROM execution_node WHERE execution_id = ?1 AND node = ?2 AND job_id IS NOT NULL
