-- Deletes the first row.
DELETE FROM plain WHERE id = (SELECT id FROM plain ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING payload::text
