-- Takes the claim lock of the queue.
SELECT pg_advisory_xact_lock(730834, q.id) FROM leasehold.queue q WHERE q.name = 'mail'
