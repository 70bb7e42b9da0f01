-- Empties every table, for the initial copy of a subscription.
DO $$
BEGIN
    EXECUTE (SELECT 'TRUNCATE ' || string_agg(format('leasehold.%I', c.relname), ', ') || ' CASCADE'
        FROM pg_class c WHERE c.relnamespace = 'leasehold'::regnamespace AND c.relkind = 'r');
END
$$
