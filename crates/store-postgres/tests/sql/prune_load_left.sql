-- Counts what is left of a history that ended more than a month ago.
SELECT (SELECT count(*) FROM leasehold.workflow_execution_queue WHERE finished_at < now() - interval '30 days') AS requests,
    (SELECT count(*) FROM leasehold.workflow_execution WHERE finished_at < now() - interval '30 days') AS executions,
    (SELECT count(*) FROM leasehold.request_event WHERE at < now() - interval '30 days') AS events,
    (SELECT count(*) FROM leasehold.job WHERE created_at < now() - interval '30 days') AS jobs,
    (SELECT count(*) FROM leasehold.job_end WHERE finished_at < now() - interval '30 days') AS ended
