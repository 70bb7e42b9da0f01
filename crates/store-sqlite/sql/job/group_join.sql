-- Records that a group may have a job due. The group joins the round at its end, unless it is in it or at its limit.
INSERT INTO job_group (queue_id, group_name, turn, has_jobs, ready, running)
VALUES (?1, ?2, (SELECT coalesce(max(turn), 0) + 1 FROM job_group WHERE queue_id = ?1), 1,
    (SELECT coalesce(group_limit, 1) > 0 FROM queue WHERE id = ?1), 0)
ON CONFLICT (queue_id, group_name) DO UPDATE
SET has_jobs = 1,
    turn = CASE WHEN (SELECT running < coalesce(group_limit, 9223372036854775807) FROM queue WHERE id = ?1) THEN excluded.turn ELSE turn END,
    ready = (SELECT running < coalesce(group_limit, 9223372036854775807) FROM queue WHERE id = ?1)
WHERE ready = 0
