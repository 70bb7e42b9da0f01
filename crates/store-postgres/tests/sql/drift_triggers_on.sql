-- Switches triggers on again.
SET session_replication_role = DEFAULT
