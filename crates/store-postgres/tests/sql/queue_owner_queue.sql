-- Inserts a queue as it was before queues had owners.
INSERT INTO queue (name) VALUES ($1)
