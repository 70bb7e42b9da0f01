-- Takes the groups that are at the limit out of the round.
UPDATE job_group SET ready = 0 WHERE queue_id = ?1 AND ready = 1 AND running >= ?2
