-- Deletes versions of cursors that claims left behind because another transaction had locked them.
DELETE FROM {schema}.job_cursor c WHERE c.ctid = ANY (ARRAY(
    SELECT o.ctid FROM {schema}.job_cursor o
    WHERE o.version < (SELECT n.version FROM {schema}.job_cursor n WHERE n.queue_id = o.queue_id AND n.priority = o.priority
        ORDER BY n.version DESC LIMIT 1)
    FOR UPDATE SKIP LOCKED))
