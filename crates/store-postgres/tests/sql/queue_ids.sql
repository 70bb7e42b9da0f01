-- Returns the ids of all queues.
SELECT array_agg(id) AS ids FROM leasehold.queue
