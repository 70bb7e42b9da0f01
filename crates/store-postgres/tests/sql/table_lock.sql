-- Locks the table of workspaces until the transaction ends.
LOCK TABLE workspace IN ACCESS EXCLUSIVE MODE
