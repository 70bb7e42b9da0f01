-- Disables all triggers on this connection, as a restore does.
SET session_replication_role = replica
