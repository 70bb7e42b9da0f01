-- Recounts the requests of every workspace and marks it to be examined again, as repair after manual changes that wrote no events.
-- release: 1
-- Commits after each workspace, so it cannot run in a transaction. Waits for no transaction that writes, and none waits for it. The next folds
-- apply what it finds. Settings of a procedure would forbid it to commit: the functions that it calls have their own.
CREATE OR REPLACE PROCEDURE {schema}.leasehold_rebuild() LANGUAGE plpgsql
AS $$
DECLARE
    counted uuid := '00000000-0000-0000-0000-000000000000'::uuid;
BEGIN
    COMMIT;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    LOOP
        SELECT w.id INTO counted FROM {schema}.workspace w WHERE w.id > counted ORDER BY w.id LIMIT 1;
        EXIT WHEN NOT FOUND;
        PERFORM {schema}.leasehold_recount(counted);
        PERFORM {schema}.leasehold_notify();
        COMMIT AND CHAIN;
    END LOOP;
END
$$
