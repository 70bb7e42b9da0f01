-- What another role with CREATE on the schema may add: a function with a name of Leasehold's, which everybody may call.
GRANT CREATE, USAGE ON SCHEMA public TO pg_read_all_stats;
SET ROLE pg_read_all_stats;
CREATE FUNCTION public.leasehold_enqueue(note text) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$ SELECT note $$;
RESET ROLE;
