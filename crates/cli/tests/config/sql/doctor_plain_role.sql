-- A role as in production: all rights on our tables, none on the server.
DO $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'leasehold_plain') THEN
        CREATE ROLE leasehold_plain LOGIN;
    END IF;
    GRANT USAGE ON SCHEMA leasehold TO leasehold_plain;
    GRANT ALL ON ALL TABLES IN SCHEMA leasehold TO leasehold_plain;
    GRANT ALL ON ALL SEQUENCES IN SCHEMA leasehold TO leasehold_plain;
END
$$
