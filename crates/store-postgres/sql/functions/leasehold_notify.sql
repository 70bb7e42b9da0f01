-- Notifies a waiting dispatcher, if there is one, and returns whether it notified.
-- release: 1
-- A transaction that notifies commits under a lock of the whole cluster, so transactions notify only while a dispatcher waits.
-- A waiting dispatcher holds this advisory lock exclusively. A transaction that creates work takes it shared until it
-- commits; if that fails, a dispatcher waits or is about to, and the transaction notifies. A dispatcher that is about to
-- wait acquires the lock, which waits for all transactions that did not notify, and then polls once more: no work is missed.
-- Called once a statement, as `(SELECT leasehold_notify())`.
CREATE OR REPLACE FUNCTION {schema}.leasehold_notify() RETURNS boolean LANGUAGE plpgsql AS $$
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
