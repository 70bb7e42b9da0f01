-- Makes the queues of the workspace ?1 the installation's.
UPDATE queue SET owner_id = NULL WHERE owner_id = ?1
