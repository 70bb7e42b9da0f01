-- How many requests of a workspace are in each status, as the triggers keep it.
SELECT pending, claimed, dispatched, completed, failed FROM workspace_turn WHERE workspace_id = ?1
