-- Deletes versions of groups and rounds that claims left behind because another transaction had locked them, and ends that they have folded.
WITH groups AS (
    DELETE FROM {schema}.job_group g WHERE g.ctid = ANY (ARRAY(
        SELECT o.ctid FROM {schema}.job_group o
        WHERE o.version < (SELECT n.version FROM {schema}.job_group n WHERE n.queue_id = o.queue_id AND n.group_name = o.group_name
                ORDER BY n.version DESC LIMIT 1)
            OR NOT o.has_jobs AND o.running = 0 AND NOT EXISTS (
                SELECT FROM {schema}.job_group n WHERE n.queue_id = o.queue_id AND n.group_name = o.group_name AND n.version < o.version)
        FOR UPDATE SKIP LOCKED))
), rounds AS (
    DELETE FROM {schema}.job_round r WHERE r.ctid = ANY (ARRAY(
        SELECT o.ctid FROM {schema}.job_round o
        WHERE o.version < (SELECT n.version FROM {schema}.job_round n WHERE n.queue_id = o.queue_id ORDER BY n.version DESC LIMIT 1)
        FOR UPDATE SKIP LOCKED))
)
DELETE FROM {schema}.job_group_end e WHERE e.ctid = ANY (ARRAY(
    SELECT o.ctid FROM {schema}.job_group_end o
    CROSS JOIN LATERAL (SELECT n.ends_xid, n.ends_late FROM {schema}.job_round n WHERE n.queue_id = o.queue_id ORDER BY n.version DESC LIMIT 1) n
    WHERE o.xid < n.ends_xid AND o.xid <> ALL (n.ends_late)
    FOR UPDATE OF o SKIP LOCKED))
