-- Lists the tables of the event log's partitions: attached, detaching or spare.
SELECT substr(c.relname::text, 15)::bigint AS number,
    CASE WHEN i.inhrelid IS NULL THEN 'spare' WHEN i.inhdetachpending THEN 'detaching' ELSE 'attached' END AS state
FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
WHERE c.relnamespace = 'leasehold'::regnamespace AND c.relkind = 'r' AND c.relname ~ '^request_event_[0-9]+$'
ORDER BY number
