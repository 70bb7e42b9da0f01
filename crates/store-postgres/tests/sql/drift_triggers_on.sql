-- Guards are back.
SET session_replication_role = DEFAULT
