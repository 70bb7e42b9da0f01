-- Stores the rows and sequences of a database as JSON in the session setting testkit.content.
DO $$
DECLARE
    relation regclass;
    found jsonb;
    rows jsonb := '{}';
    sequences jsonb;
BEGIN
    FOR relation IN
        SELECT oid FROM pg_class WHERE oid >= 16384 AND relkind = 'r' AND relnamespace <> 'pg_toast'::regnamespace
    LOOP
        EXECUTE format('SELECT jsonb_agg(row) FROM %s AS row', relation) INTO found;
        IF found IS NOT NULL THEN
            rows := rows || jsonb_build_object(relation::text, found);
        END IF;
    END LOOP;
    SELECT jsonb_object_agg(format('%I.%I', schemaname, sequencename), jsonb_build_array(start_value, last_value))
    INTO sequences FROM pg_sequences;
    PERFORM set_config('testkit.content', jsonb_build_object('rows', rows, 'sequences', sequences)::text, false);
END $$;
