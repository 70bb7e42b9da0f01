-- Counts the queues of a workspace.
SELECT count(*) FROM queue WHERE owner_id = $1
