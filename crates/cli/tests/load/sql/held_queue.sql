-- Returns the queue of the tenant whose rows are locked.
SELECT q.id FROM queue q WHERE q.name = 'held'
