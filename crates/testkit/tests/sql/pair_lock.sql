-- Locks one of the two rows.
SELECT id FROM pair WHERE id = $1 FOR UPDATE
