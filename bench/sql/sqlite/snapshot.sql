-- Opens a transaction that keeps its snapshot as long as it stays open.
BEGIN;
SELECT count(*) FROM workspace_turn;
