-- Has the next fold look at workspace $1 anew, and wakes whoever waits for work.
INSERT INTO workspace_delta (workspace_id, anew) VALUES ($1, true)
RETURNING (SELECT leasehold_wake()) AS woken
