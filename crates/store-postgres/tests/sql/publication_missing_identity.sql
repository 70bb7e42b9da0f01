-- Lists the tables whose updates and deletions a publication rejects.
SELECT c.relname::text AS name FROM pg_class c
WHERE c.relkind IN ('r', 'p') AND c.relnamespace = current_schema()::regnamespace AND c.relreplident <> 'f'
    AND NOT EXISTS (
        SELECT FROM pg_index i WHERE i.indrelid = c.oid
            AND CASE c.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident ELSE false END)
ORDER BY c.relname
