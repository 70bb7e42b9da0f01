-- Hashes every object of a database with its privileges and settings. The hash is unchanged if a test changed only rows.
SELECT md5(string_agg(line, E'\n' ORDER BY line))
FROM (
    SELECT concat_ws(' ', 'relation', c.oid, c.relname, c.relkind, c.relowner, c.relacl, c.reloptions)
    FROM pg_class c WHERE c.relnamespace <> 'pg_catalog'::regnamespace AND c.relkind <> 't'
    UNION ALL
    SELECT concat_ws(' ', 'column', a.attrelid, a.attnum, a.attname, a.atttypid, a.attnotnull, a.attacl, a.attisdropped)
    FROM pg_attribute a WHERE a.attrelid >= 16384
    UNION ALL
    SELECT concat_ws(' ', 'default', d.adrelid, d.adnum, pg_get_expr(d.adbin, d.adrelid)) FROM pg_attrdef d
    UNION ALL
    SELECT concat_ws(' ', 'index', pg_get_indexdef(i.indexrelid), i.indisvalid) FROM pg_index i WHERE i.indrelid >= 16384
    UNION ALL
    SELECT concat_ws(' ', 'constraint', c.conrelid, c.conname, pg_get_constraintdef(c.oid))
    FROM pg_constraint c WHERE c.oid >= 16384
    UNION ALL
    SELECT concat_ws(' ', 'trigger', pg_get_triggerdef(t.oid), t.tgenabled) FROM pg_trigger t WHERE NOT t.tgisinternal
    UNION ALL
    SELECT concat_ws(' ', 'function', p.oid::regprocedure, p.proowner, p.proacl, p.proconfig, p.prosecdef, md5(p.prosrc))
    FROM pg_proc p WHERE p.oid >= 16384
    UNION ALL
    SELECT concat_ws(' ', 'schema', n.nspname, n.nspowner, n.nspacl) FROM pg_namespace n WHERE n.nspname NOT LIKE 'pg_%'
    UNION ALL
    SELECT concat_ws(' ', 'extension', e.extname, e.extversion) FROM pg_extension e
    UNION ALL
    SELECT concat_ws(' ', 'setting', s.setrole, s.setconfig)
    FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase WHERE d.datname = current_database()
) AS objects (line);
