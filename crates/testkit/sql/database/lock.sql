-- Lets one process at a time build a template; the lock goes with the connection.
SELECT pg_advisory_lock(hashtextextended($1, 0));
