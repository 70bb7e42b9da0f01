-- Locks a template's name, so that one process at a time builds it. Closing the connection releases the lock.
SELECT pg_advisory_lock(hashtextextended($1, 0));
