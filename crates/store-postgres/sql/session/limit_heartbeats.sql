-- Limits of a connection for heartbeats: a renewal that takes longer is of no use, because the caller repeats it.
SELECT set_config('lock_timeout', '500ms', false)
