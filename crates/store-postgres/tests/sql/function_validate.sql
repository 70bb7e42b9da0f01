-- Checks the body of every Leasehold function, including those created before their tables.
SELECT CASE l.lanname WHEN 'plpgsql' THEN plpgsql_validator(p.oid) ELSE fmgr_sql_validator(p.oid) END AS checked
FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
WHERE p.pronamespace = current_schema()::regnamespace AND p.proname LIKE 'leasehold\_%'
