-- Opens a transaction that holds a snapshot until it ends.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM leasehold.workspace;
