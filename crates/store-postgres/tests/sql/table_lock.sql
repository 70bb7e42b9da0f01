-- Locks the table of workspaces until the transaction ends.
LOCK TABLE leasehold.workspace IN ACCESS EXCLUSIVE MODE
