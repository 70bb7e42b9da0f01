-- Lets the group of jobs without group ('') join the round at its end if it has jobs (p_some), or leave it. Returns the new round.
-- release: 1
CREATE OR REPLACE FUNCTION {schema}.leasehold_job_ungrouped(p_queue integer, p_some boolean, p_round {schema}.job_round) RETURNS {schema}.job_round
LANGUAGE plpgsql AS $$
DECLARE
    round {schema}.job_round := p_round;
    valid record;
    deleted text;
    ready boolean;
BEGIN
    SELECT o.ctid AS spot, o.* INTO valid FROM {schema}.job_group o
    WHERE o.queue_id = p_queue AND o.group_name = '' ORDER BY o.version DESC LIMIT 1;
    ready := p_some AND coalesce(valid.running, 0) < coalesce(round.group_limit, 2147483647);
    IF coalesce(valid.has_jobs, false) = p_some AND coalesce(valid.ready, false) = ready THEN
        RETURN round;
    END IF;
    round.last_number := round.last_number + 1;
    DELETE FROM {schema}.job_group o WHERE o.ctid = valid.spot AND o.xmax = '0' RETURNING o.group_name INTO deleted;
    valid.leftover := coalesce(valid.leftover, false) OR valid.spot IS NOT NULL AND deleted IS NULL;
    IF p_some OR valid.running > 0 OR valid.leftover THEN
        INSERT INTO {schema}.job_group (queue_id, group_name, version, turn, running, has_jobs, ready, leftover)
        VALUES (p_queue, '', round.last_number, CASE WHEN ready AND NOT coalesce(valid.ready, false) THEN round.last_number ELSE coalesce(valid.turn, 0) END,
            coalesce(valid.running, 0), p_some, ready, valid.leftover);
    END IF;
    RETURN round;
END
$$
