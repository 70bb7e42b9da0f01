-- Switches notifications off for this connection.
SET leasehold.notify = off
