-- Whether a role that owns neither may call Leasehold's function, and the other one of that name.
SELECT has_function_privilege(
        'pg_monitor', 'leasehold_enqueue(uuid, uuid, jsonb, integer, timestamptz, text, interval, text, text, jsonb)', 'EXECUTE')
    AS ours,
    has_function_privilege('pg_monitor', 'leasehold_enqueue(text)', 'EXECUTE') AS other
