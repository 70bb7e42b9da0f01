-- Returns how many events, jobs and pages of leases there are.
SELECT true AS copied, (SELECT count(*) FROM leasehold.request_event) AS events, (SELECT count(*) FROM leasehold.job) AS jobs,
    (SELECT count(*) FROM leasehold.job_lease) AS leases
