-- Promotes a replica and waits until it accepts writes.
SELECT pg_promote() AS promoted
