-- Returns whether common JSON parsers can read a document: numbers in the range of a double, at most 64 levels deep.
-- release: 1
-- Depth: after removing strings and scalars, removing the innermost brackets 64 times must leave nothing.
CREATE OR REPLACE FUNCTION {schema}.leasehold_is_readable(document jsonb) RETURNS boolean LANGUAGE plpgsql IMMUTABLE
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    brackets text := pg_catalog.regexp_replace(
        pg_catalog.regexp_replace(document::text, '"([^"\\]|\\.)*"', '', 'g'), '[^][{}]', '', 'g');
BEGIN
    IF pg_catalog.jsonb_path_exists(document, '$.** ? (@.type() == "number" && (@ > 1.7e308 || @ < -1.7e308))') THEN
        RETURN false;
    END IF;
    FOR level IN 1..64 LOOP
        EXIT WHEN brackets = '';
        brackets := pg_catalog.replace(pg_catalog.replace(brackets, '[]', '.'), '{}', '.');
        brackets := pg_catalog.replace(brackets, '.', '');
    END LOOP;
    RETURN brackets = '';
END
$$
