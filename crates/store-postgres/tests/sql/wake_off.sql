-- No notifications from this connection.
SET leasehold.notify = off
