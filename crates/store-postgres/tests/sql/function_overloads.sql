-- Creates overloads that fail when called, as a role with CREATE on the schema could.
GRANT CREATE, USAGE ON SCHEMA public TO pg_read_all_stats;
SET ROLE pg_read_all_stats;
CREATE FUNCTION public.leasehold_check_options(text, jsonb, text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'called as %: leasehold.leasehold_check_options(text, jsonb, text)', current_user;
END $$;
CREATE FUNCTION public.leasehold_take_slots(uuid[], integer[], bigint[]) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'called as %: leasehold.leasehold_take_slots(uuid[], integer[], bigint[])', current_user;
END $$;
CREATE FUNCTION public.nextval(text) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'called as %: nextval(text)', current_user;
END $$;
CREATE FUNCTION public.setval(text, bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'called as %: setval(text, bigint)', current_user;
END $$;
CREATE FUNCTION public.jsonb_path_exists(jsonb, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'called as %: jsonb_path_exists(jsonb, text)', current_user;
END $$;
CREATE FUNCTION public.regexp_replace(text, text, text, name) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'called as %: regexp_replace(text, text, text, name)', current_user;
END $$;
CREATE FUNCTION public.replace(text, text, name) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'called as %: replace(text, text, name)', current_user;
END $$;
CREATE FUNCTION public.encode(bytea, name) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'called as %: encode(bytea, name)', current_user;
END $$;
CREATE FUNCTION public.cardinality(text[]) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'called as %: cardinality(text[])', current_user;
END $$;
CREATE FUNCTION public.array_to_string(text[], text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'called as %: array_to_string(text[], text)', current_user;
END $$;
CREATE FUNCTION public.times(numeric, integer) RETURNS numeric LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'called as %: times(numeric, integer)', current_user;
END $$;
CREATE OPERATOR public.* (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = public.times);
RESET ROLE;
