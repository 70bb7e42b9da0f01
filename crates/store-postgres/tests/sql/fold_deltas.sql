-- Adds deltas of a workspace and folds them, 300 times, each in a transaction of its own.
DO $$ BEGIN
    FOR round IN 1..300 LOOP
        INSERT INTO leasehold.workspace_delta (workspace_id, open_bytes) SELECT id, 1 FROM leasehold.workspace, generate_series(1, 50);
        PERFORM leasehold.leasehold_fold();
        COMMIT;
    END LOOP;
END $$
