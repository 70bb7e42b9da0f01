-- Serializes migrations. Another process may take seconds to migrate.
SELECT set_config('lock_timeout', '10s', true), pg_advisory_xact_lock(7308332185)
