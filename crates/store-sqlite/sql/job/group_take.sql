-- Records that a group gave ?3 jobs, and whether it may have more (?4). It goes to the end of the round, or leaves it.
UPDATE job_group
SET turn = (SELECT max(turn) + 1 FROM job_group WHERE queue_id = ?1),
    has_jobs = ?4,
    running = (SELECT CASE WHEN group_limit IS NULL THEN 0 ELSE running + ?3 END FROM queue WHERE id = ?1),
    ready = ?4 AND (SELECT group_limit IS NULL OR running + ?3 < group_limit FROM queue WHERE id = ?1)
WHERE queue_id = ?1 AND group_name = ?2
