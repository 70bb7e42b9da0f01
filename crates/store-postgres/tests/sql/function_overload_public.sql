-- Creates an overload of a Leasehold function that every role can call, as a role with CREATE on the schema could.
GRANT CREATE, USAGE ON SCHEMA public TO pg_read_all_stats;
SET ROLE pg_read_all_stats;
CREATE FUNCTION public.leasehold_enqueue(note text) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$ SELECT note $$;
RESET ROLE;
