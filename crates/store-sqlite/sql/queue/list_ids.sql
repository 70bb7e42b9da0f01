-- Lists the ids of all queues.
SELECT id FROM queue
