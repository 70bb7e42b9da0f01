-- Returns the jobs of a queue.
SELECT j.id FROM job j WHERE j.queue_id IN ({queue})
