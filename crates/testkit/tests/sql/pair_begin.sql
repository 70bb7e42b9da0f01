-- Begins a transaction that waits for locks as briefly as those of the store that hold rows of several tenants.
BEGIN; SET LOCAL lock_timeout = '200ms'
