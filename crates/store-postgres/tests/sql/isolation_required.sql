-- Creates a function that fails a statement of a transaction at another isolation level than READ COMMITTED, and calls it before every change of a table.
DO $$
DECLARE
    changed regclass;
BEGIN
    CREATE FUNCTION public.require_read_committed() RETURNS trigger LANGUAGE plpgsql AS $body$
    BEGIN
        IF current_setting('transaction_isolation') <> 'read committed' THEN
            RAISE EXCEPTION 'changes % at %', tg_table_name, current_setting('transaction_isolation');
        END IF;
        RETURN NULL;
    END
    $body$;
    FOR changed IN SELECT oid FROM pg_class WHERE relnamespace = 'leasehold'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition LOOP
        EXECUTE format('CREATE TRIGGER require_read_committed BEFORE INSERT OR UPDATE OR DELETE ON %s FOR EACH STATEMENT EXECUTE FUNCTION public.require_read_committed()', changed);
    END LOOP;
END
$$
