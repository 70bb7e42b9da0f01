-- Folds the changes of a queue's groups and applies its group_limit to them, if the queue has groups.
-- release: 1
-- The caller holds the advisory lock of the queue.
CREATE OR REPLACE FUNCTION {schema}.leasehold_job_regroup(p_queue integer, p_xid_offset bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    most integer;
    was_version bigint;
    round {schema}.job_round;
BEGIN
    SELECT q.group_limit INTO most FROM {schema}.queue q WHERE q.id = p_queue;
    IF NOT EXISTS (SELECT FROM {schema}.job_line l WHERE l.queue_id = p_queue AND l.priority = 32767) THEN
        RETURN false;
    END IF;
    round := {schema}.leasehold_job_fold(p_queue, p_xid_offset);
    was_version := round.version;
    round := {schema}.leasehold_job_recount(p_queue, most, round, p_xid_offset);
    DELETE FROM {schema}.job_round r WHERE r.queue_id = p_queue AND r.version = was_version AND r.xmax = '0';
    round.version := was_version + 1;
    INSERT INTO {schema}.job_round SELECT round.*;
    RETURN true;
END
$$
