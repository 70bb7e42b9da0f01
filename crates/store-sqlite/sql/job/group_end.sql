-- Records that ?3 leases of a group have ended. If the group was at its limit and may have a job due, it joins the round at its end.
UPDATE job_group
SET running = max(running - ?3, 0),
    turn = CASE WHEN ready = 0 AND has_jobs = 1 AND running - ?3 < (SELECT coalesce(group_limit, 9223372036854775807) FROM queue WHERE id = ?1)
        THEN (SELECT max(turn) + 1 FROM job_group WHERE queue_id = ?1) ELSE turn END,
    ready = has_jobs = 1 AND running - ?3 < (SELECT coalesce(group_limit, 9223372036854775807) FROM queue WHERE id = ?1)
WHERE queue_id = ?1 AND group_name = ?2
