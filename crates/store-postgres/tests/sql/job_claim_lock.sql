-- Takes the claim lock of the queue.
SELECT pg_advisory_xact_lock(730834, q.id) FROM queue q WHERE q.name = 'mail'
