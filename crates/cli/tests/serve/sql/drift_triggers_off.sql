-- As a restore or a careless hand does: from here on nothing stands guard in this session.
SET session_replication_role = replica
