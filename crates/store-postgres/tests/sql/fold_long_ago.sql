-- Lets the last fold be twenty seconds ago, as on a server that was idle.
UPDATE leasehold.request_fold SET folded_at = folded_at - interval '20 seconds'
