-- Returns the ids of the two queues.
SELECT (SELECT id FROM queue WHERE name = 'large') AS large, (SELECT id FROM queue WHERE name = 'small') AS small
