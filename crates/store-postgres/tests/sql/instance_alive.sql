-- Registers an instance that is alive, as a server does.
INSERT INTO leasehold.instance (id, version, dispatches, started_at, seen_at) VALUES ('a server', '0', false, clock_timestamp(), clock_timestamp())
