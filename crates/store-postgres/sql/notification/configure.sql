-- Settings of the listener connection: a short lock timeout, no idle timeout, and statements that see what others committed while they waited.
SELECT set_config('lock_timeout', '1s', false), set_config('idle_session_timeout', '0', false),
    set_config('default_transaction_isolation', 'read committed', false)
