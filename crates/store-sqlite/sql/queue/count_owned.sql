-- Counts the queues that the workspace ?1 owns.
SELECT count(*) AS owned FROM queue WHERE owner_id = ?1
