-- Returns whether a role that owns neither can call Leasehold's function, and the overload.
SELECT has_function_privilege(
        'pg_monitor', 'leasehold_enqueue(uuid, uuid, jsonb, integer, timestamptz, text, interval, text, text, jsonb)', 'EXECUTE')
    AS ours,
    has_function_privilege('pg_monitor', 'public.leasehold_enqueue(text)', 'EXECUTE') AS other
