-- Inserts one row and notifies listeners.
WITH inserted AS (INSERT INTO plain (queue_id, kind, payload) VALUES ($1, $2, $3::text::json) RETURNING id)
SELECT pg_notify('plain', '') FROM inserted
