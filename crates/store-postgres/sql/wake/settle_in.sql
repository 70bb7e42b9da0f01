-- Settings of the connection that listens: it waits for others only so long, and may be idle for ever.
SELECT set_config('lock_timeout', '1s', false), set_config('idle_session_timeout', '0', false)
