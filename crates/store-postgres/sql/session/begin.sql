-- Begins a transaction at the isolation level of the session, which is READ COMMITTED on every direct connection.
START TRANSACTION
