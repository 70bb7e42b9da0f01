-- Settings of the listener connection: a short lock timeout, and no idle timeout.
SELECT set_config('lock_timeout', '1s', false), set_config('idle_session_timeout', '0', false)
