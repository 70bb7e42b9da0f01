-- Returns the ids of the two queues.
SELECT (SELECT id FROM leasehold.queue WHERE name = 'large') AS large, (SELECT id FROM leasehold.queue WHERE name = 'small') AS small
