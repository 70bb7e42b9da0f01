-- Takes a group out of the round of its queue, unless it has a ready job.
-- release: 1
-- The caller holds the advisory lock of the queue. Waits for no row.
CREATE OR REPLACE FUNCTION {schema}.leasehold_job_leave(p_queue integer, p_group text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    valid record;
    deleted text;
    round {schema}.job_round;
BEGIN
    SELECT o.ctid AS spot, o.* INTO valid FROM {schema}.job_group o
    WHERE o.queue_id = p_queue AND o.group_name = p_group ORDER BY o.version DESC LIMIT 1;
    IF NOT coalesce(valid.has_jobs, false)
        OR EXISTS (SELECT FROM {schema}.job_waiting w WHERE w.queue_id = p_queue AND w.group_name = p_group AND w.ready) THEN
        RETURN false;
    END IF;
    SELECT r.* INTO round FROM {schema}.job_round r WHERE r.queue_id = p_queue ORDER BY r.version DESC LIMIT 1;
    DELETE FROM {schema}.job_round r WHERE r.queue_id = p_queue AND r.version = round.version AND r.xmax = '0';
    round.version := round.version + 1;
    round.last_number := round.last_number + 1;
    INSERT INTO {schema}.job_round SELECT round.*;
    DELETE FROM {schema}.job_group o WHERE o.ctid = valid.spot AND o.xmax = '0' RETURNING o.group_name INTO deleted;
    valid.leftover := coalesce(valid.leftover, false) OR valid.spot IS NOT NULL AND deleted IS NULL;
    IF valid.running > 0 OR valid.leftover THEN
        INSERT INTO {schema}.job_group (queue_id, group_name, version, turn, from_created_at, from_id, running, from_rank, has_jobs, ready, leftover)
        VALUES (p_queue, p_group, round.last_number, valid.turn, valid.from_created_at, valid.from_id, valid.running, valid.from_rank, false, false, valid.leftover);
    END IF;
    RETURN true;
END
$$
