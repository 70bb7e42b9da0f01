-- Reads the number of requests of a workspace in each status, as maintained by triggers.
SELECT pending, claimed, dispatched, completed, failed FROM workspace_turn WHERE workspace_id = ?1
