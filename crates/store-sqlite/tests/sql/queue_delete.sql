-- Deletes a queue manually.
DELETE FROM queue WHERE name = ?1
