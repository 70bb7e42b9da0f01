-- Opens a transaction that goes on seeing what it sees now, for as long as it is left open.
BEGIN;
SELECT count(*) FROM workspace_turn;
