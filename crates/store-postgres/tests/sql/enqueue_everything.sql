-- Calls both public functions with every argument.
SELECT leasehold.leasehold_enqueue(
        workspace_id => $1, definition_id => $2, params => '{"a": [1, {"b": "c"}]}', priority => 1, run_at => clock_timestamp(),
        idempotency_key => 'k', dedupe_window => interval '1 hour', trace_context => 't', enqueued_by => 'me', options => $3)::text
    AS request,
    leasehold.leasehold_job_enqueue(
        'mail', 'send', '{}'::json, 1, clock_timestamp() + interval '1 hour', 'k', interval '1 hour', 3, interval '1 minute', 't',
        $3) AS job
