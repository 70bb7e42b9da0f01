-- Returns whether every table of the subscription is copied, and how many events and jobs have arrived.
SELECT NOT EXISTS (SELECT FROM pg_subscription_rel WHERE srsubstate <> 'r') AS copied,
    (SELECT count(*) FROM leasehold.request_event) AS events, (SELECT count(*) FROM leasehold.job) AS jobs,
    (SELECT count(*) FROM leasehold.job_lease) AS leases
