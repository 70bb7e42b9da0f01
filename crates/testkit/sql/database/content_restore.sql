-- Restores the rows and sequences of a database from the session setting testkit.content.
DO $$
DECLARE
    content jsonb := current_setting('testkit.content')::jsonb;
    relation regclass;
    found jsonb;
    changed regclass[] := '{}';
    entry record;
BEGIN
    FOR relation IN
        SELECT oid FROM pg_class
        WHERE oid >= 16384 AND relkind = 'r' AND relnamespace <> 'pg_toast'::regnamespace
            AND (pg_relation_size(oid) > 0 OR content -> 'rows' ? oid::regclass::text)
    LOOP
        found := NULL;
        IF content -> 'rows' ? relation::text THEN
            EXECUTE format('SELECT jsonb_agg(row) FROM %s AS row', relation) INTO found;
        END IF;
        IF found IS DISTINCT FROM content -> 'rows' -> relation::text OR found IS NULL THEN
            changed := changed || relation;
        END IF;
    END LOOP;
    IF changed <> '{}' THEN
        EXECUTE 'TRUNCATE ' || array_to_string(changed, ', ') || ' CASCADE';
    END IF;
    FOR entry IN SELECT key, value FROM jsonb_each(content -> 'rows') LOOP
        IF entry.key::regclass = ANY (changed) THEN
            EXECUTE format(
                'INSERT INTO %1$s OVERRIDING SYSTEM VALUE SELECT * FROM jsonb_populate_recordset(NULL::%1$s, $1)',
                entry.key
            ) USING entry.value;
        END IF;
    END LOOP;
    FOR entry IN SELECT key, value FROM jsonb_each(content -> 'sequences') LOOP
        PERFORM setval(
            entry.key::regclass,
            coalesce((entry.value ->> 1)::bigint, (entry.value ->> 0)::bigint),
            entry.value ->> 1 IS NOT NULL
        );
    END LOOP;
END $$;
