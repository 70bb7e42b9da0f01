-- Notifies a sleeping dispatcher, if there is one, and tells whether it notified.
-- release: 1
-- A transaction that notifies commits under a lock of the whole cluster, so nothing is notified while no dispatcher sleeps.
-- A sleeping dispatcher holds this advisory lock exclusively. A transaction that creates work takes it shared until its
-- work can be seen; where that fails a dispatcher sleeps, or is about to, and is notified. A dispatcher that goes to sleep
-- waits for the lock, and so for all transactions that found none asleep, and then polls once more: no work is missed.
-- Called once a statement, as `(SELECT leasehold_wake())`.
CREATE OR REPLACE FUNCTION leasehold_wake() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    -- A transaction that notified cannot be prepared for two-phase commit.
    IF pg_catalog.pg_try_advisory_xact_lock_shared(7308332187)
        OR pg_catalog.current_setting('leasehold.notify', true) = 'off'
    THEN
        RETURN false;
    END IF;
    PERFORM pg_catalog.pg_notify('leasehold', 'work');
    RETURN true;
END
$$
