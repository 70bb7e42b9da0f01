-- Returns whether every table of the subscription is copied, and how many events and jobs have arrived. The tables of events may not be attached yet.
SELECT NOT EXISTS (SELECT FROM pg_subscription_rel WHERE srsubstate <> 'r') AS copied,
    (SELECT count(*) FROM leasehold.request_event_0) + (SELECT count(*) FROM leasehold.request_event_1)
        + (SELECT count(*) FROM leasehold.request_event_2) + (SELECT count(*) FROM leasehold.request_event_3)
        + (SELECT count(*) FROM leasehold.request_event_4) AS events,
    (SELECT count(*) FROM leasehold.job) AS jobs, (SELECT count(*) FROM leasehold.job_lease) AS leases
