-- Applies the next release of every function, with another body.
DO $next$
DECLARE
    one record;
BEGIN
    FOR one IN
        SELECT p.oid, f.name FROM pg_proc p JOIN leasehold_function f ON f.name = p.proname
        WHERE p.pronamespace = current_schema()::regnamespace
    LOOP
        EXECUTE replace(pg_get_functiondef(one.oid), 'AS $function$', 'AS $function$ -- next release' || chr(10));
        UPDATE leasehold_function SET release = release + 1, checksum = checksum + 1 WHERE name = one.name;
    END LOOP;
END
$next$
