-- Marks workspace $1 to be examined again by the next fold, and notifies a waiting dispatcher.
INSERT INTO {schema}.workspace_delta (workspace_id, anew) VALUES ($1, true)
RETURNING (SELECT {schema}.leasehold_notify()) AS notified
