-- Lets a role use the tables, which it does not own.
DO $grant$
BEGIN
    GRANT USAGE ON SCHEMA leasehold TO pg_monitor;
    GRANT ALL ON ALL TABLES IN SCHEMA leasehold TO pg_monitor;
    GRANT ALL ON ALL SEQUENCES IN SCHEMA leasehold TO pg_monitor;
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA leasehold TO pg_monitor;
END
$grant$
