-- As a restore or a careless hand does: from here on nothing stands guard on this connection.
SET session_replication_role = replica
