-- Notifies workers that wait for jobs, if there are any, and returns whether it notified.
-- release: 1
-- Called once by each statement that enqueues jobs; leasehold_notify explains the lock.
CREATE OR REPLACE FUNCTION {schema}.leasehold_job_notify() RETURNS boolean LANGUAGE sql AS $$
    SELECT CASE
        WHEN pg_catalog.pg_try_advisory_xact_lock_shared(7308332189)
            OR pg_catalog.current_setting('leasehold.notify', true) = 'off' THEN false
        ELSE pg_catalog.pg_notify('leasehold_job', '') IS NOT NULL
    END
$$
