-- Returns how many of the queue ids $1 belong to queues whose names begin with $2.
SELECT count(*) AS shared FROM leasehold.queue WHERE id = ANY ($1::integer[]) AND starts_with(name, $2)
