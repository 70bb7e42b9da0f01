-- Begins a transaction that fails rather than wait for anybody.
BEGIN; SET LOCAL lock_timeout = '1s'
