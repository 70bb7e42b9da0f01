-- Creates an operator for every pair of types that PostgreSQL has none for, implicit casts, and functions that take the type of these casts, as
-- a role with CREATE on the schema could. Each fails when it is called.
GRANT CREATE, USAGE ON SCHEMA public TO pg_read_all_stats;
SET ROLE pg_read_all_stats;
DO $traps$
DECLARE
    types text[] := '{smallint,integer,bigint,double precision,numeric,text,name,interval,timestamptz,timestamp,date,jsonb,json,uuid,boolean,bytea,xid8}';
    names text[] := '{+,-,*,/,=,<>,<,<=,>,>=,||,->,->>,~,&,|}';
    one text;
    other text;
    operator text;
    number integer := 0;
    of_type text;
BEGIN
    FOREACH one IN ARRAY types LOOP
        FOREACH other IN ARRAY types LOOP
            FOREACH operator IN ARRAY names LOOP
                CONTINUE WHEN to_regoperator(format('pg_catalog.%s (%s, %s)', operator, one, other)) IS NOT NULL;
                number := number + 1;
                of_type := CASE WHEN operator IN ('=', '<>', '<', '<=', '>', '>=', '~') THEN 'boolean' ELSE one END;
                EXECUTE format($create$
                    CREATE FUNCTION public.trap_%s(%s, %s) RETURNS %s LANGUAGE plpgsql AS $body$ BEGIN
                        RAISE EXCEPTION 'called as %%: operator %s (%s, %s)', current_user;
                    END $body$;
                    CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.trap_%s);
                    $create$, number, one, other, of_type, operator, one, other, operator, one, other, number);
            END LOOP;
        END LOOP;
    END LOOP;
    CREATE TYPE public.trap AS (of_value text);
    FOREACH one IN ARRAY types LOOP
        EXECUTE format($create$
            CREATE FUNCTION public.trap_of(%1$s) RETURNS public.trap LANGUAGE plpgsql AS $body$ BEGIN
                RAISE EXCEPTION 'called as %%: cast of %1$s', current_user;
            END $body$;
            CREATE FUNCTION public.value_of(public.trap, %1$s) RETURNS %1$s LANGUAGE plpgsql AS $body$ BEGIN
                RAISE EXCEPTION 'called as %%: cast to %1$s', current_user;
            END $body$;
            CREATE CAST (%1$s AS public.trap) WITH FUNCTION public.trap_of(%1$s) AS IMPLICIT;
            $create$, one);
    END LOOP;
    FOREACH one IN ARRAY '{left,octet_length,length,jsonb_typeof,jsonb_object_keys,sha256,uuid_send,int8send,set_byte,get_byte}'::text[] LOOP
        CONTINUE WHEN to_regprocedure(format('public.%I(public.trap)', one)) IS NOT NULL;
        EXECUTE format($create$
            CREATE FUNCTION public.%1$I(public.trap) RETURNS text LANGUAGE plpgsql AS $body$ BEGIN
                RAISE EXCEPTION 'called as %%: %1$s(trap)', current_user;
            END $body$;
            CREATE FUNCTION public.%1$I(public.trap, integer) RETURNS text LANGUAGE plpgsql AS $body$ BEGIN
                RAISE EXCEPTION 'called as %%: %1$s(trap, integer)', current_user;
            END $body$;
            $create$, one);
    END LOOP;
END
$traps$;
RESET ROLE;
