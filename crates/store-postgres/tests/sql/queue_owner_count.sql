-- Counts the queues of a workspace.
SELECT count(*) FROM leasehold.queue WHERE owner_id = $1
