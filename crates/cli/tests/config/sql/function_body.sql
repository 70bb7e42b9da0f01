-- The body of the function that generates ids.
SELECT prosrc FROM pg_proc WHERE pronamespace = current_schema()::regnamespace AND proname = 'leasehold_uuid7'
