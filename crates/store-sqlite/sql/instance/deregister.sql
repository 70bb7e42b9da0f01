-- Deletes an instance.
DELETE FROM instance WHERE id = ?1
