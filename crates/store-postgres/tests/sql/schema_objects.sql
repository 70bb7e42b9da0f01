-- Returns one line for every object of the schema: its definition, and its privileges if $1 is true. Column order does not matter.
SELECT line
FROM (
    SELECT concat_ws(' ', 'relation', c.oid::regclass, c.relkind, c.relpersistence, c.reloptions,
        CASE WHEN $1 THEN c.relacl END, CASE WHEN c.relkind = 'v' THEN pg_get_viewdef(c.oid) END)
    FROM pg_class c WHERE c.relnamespace = 'leasehold'::regnamespace
    UNION ALL
    SELECT concat_ws(' ', 'column', a.attrelid::regclass, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
        a.attidentity, a.attgenerated, a.attstorage, a.attstattarget, CASE WHEN $1 THEN a.attacl END, pg_get_expr(d.adbin, d.adrelid))
    FROM pg_attribute a
    JOIN pg_class c ON c.oid = a.attrelid
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE c.relnamespace = 'leasehold'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT concat_ws(' ', 'index', pg_get_indexdef(i.indexrelid), i.indisvalid, i.indisreplident)
    FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE c.relnamespace = 'leasehold'::regnamespace
    UNION ALL
    SELECT concat_ws(' ', 'sequence', s.seqrelid::regclass, s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqmax, s.seqmin,
        s.seqcache, s.seqcycle)
    FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid WHERE c.relnamespace = 'leasehold'::regnamespace
    UNION ALL
    -- PostgreSQL 18 names NOT NULL constraints; a copied table has the names of the original.
    SELECT concat_ws(' ', 'constraint', c.conrelid::regclass, CASE WHEN c.contype <> 'n' THEN c.conname END,
        pg_get_constraintdef(c.oid), c.convalidated)
    FROM pg_constraint c WHERE c.connamespace = 'leasehold'::regnamespace
    UNION ALL
    SELECT concat_ws(' ', 'trigger', pg_get_triggerdef(t.oid), t.tgenabled)
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE c.relnamespace = 'leasehold'::regnamespace AND NOT t.tgisinternal
    UNION ALL
    SELECT concat_ws(' ', 'function', pg_get_functiondef(p.oid), CASE WHEN $1 THEN p.proacl END)
    FROM pg_proc p WHERE p.pronamespace = 'leasehold'::regnamespace
    UNION ALL
    SELECT concat_ws(' ', 'comment', d.classoid::regclass, pg_describe_object(d.classoid, d.objoid, d.objsubid), d.description)
    FROM pg_description d
    WHERE pg_describe_object(d.classoid, d.objoid, d.objsubid) LIKE '%leasehold%' AND d.objoid >= 16384
    UNION ALL
    SELECT concat_ws(' ', 'schema', n.nspname, CASE WHEN $1 THEN n.nspacl END)
    FROM pg_namespace n WHERE n.nspname = 'leasehold'
) AS objects (line)
ORDER BY line COLLATE "C"
