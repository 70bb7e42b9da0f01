-- Adds a column to every table, as a newer program may.
DO $add$
DECLARE
    name text;
BEGIN
    FOR name IN
        SELECT c.relname FROM pg_class c
        WHERE c.relnamespace = 'leasehold'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    LOOP
        EXECUTE format('ALTER TABLE leasehold.%I ADD COLUMN newer_column text NOT NULL DEFAULT ''newer''', name);
    END LOOP;
END
$add$
