-- No notifications from this session.
SET leasehold.notify = off
