-- Takes one idle database of a template for a test.
DELETE FROM idle_database
WHERE name = (SELECT name FROM idle_database WHERE template = $1 LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING name;
