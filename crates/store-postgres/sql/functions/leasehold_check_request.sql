-- Rejects a request that violates a constraint of its table, and a transition that is not allowed, with the constraint's name; for a trigger.
-- release: 1
-- A trigger instead of CHECK constraints: PostgreSQL parses the stored expressions of CHECK and WHEN clauses again in every statement that
-- writes the table. For these it took 50 of the 64 microseconds of an update of one row; this function takes 3.
-- No SET clause, which would double that: types are exact and all names are of pg_catalog or of the row.
CREATE OR REPLACE FUNCTION {schema}.leasehold_check_request() RETURNS trigger LANGUAGE plpgsql
AS $$
DECLARE
    -- As with CHECK, a rule that is NULL is not violated. OLD is NULL in an INSERT.
    violated text := CASE
        WHEN OLD.id <> NEW.id OR OLD.workspace_id <> NEW.workspace_id THEN 'request_identity'::text
        WHEN NEW.status <> ALL ('{PENDING,CLAIMED,DISPATCHED,COMPLETED,FAILED}'::text[]) THEN 'request_status'::text
        WHEN OLD.status IS DISTINCT FROM NEW.status AND NOT (CASE OLD.status
            WHEN 'PENDING'::text THEN NEW.status = 'CLAIMED'::text OR (NEW.status = 'FAILED'::text AND NEW.failure_reason = ANY (
                '{cancelled,workspace_not_found,definition_not_found,version_not_found}'::text[]))
            WHEN 'CLAIMED'::text THEN NEW.status = ANY ('{DISPATCHED,PENDING,FAILED}'::text[])
            WHEN 'DISPATCHED'::text THEN NEW.status = ANY ('{COMPLETED,FAILED}'::text[])
            ELSE OLD.status IS NULL AND NEW.status = 'PENDING'::text END) THEN 'request_transition'::text
        WHEN (NEW.status = 'PENDING'::text) <> (NEW.due IS NOT NULL) THEN 'request_due'::text
        WHEN (NEW.status = 'CLAIMED'::text) <> (NEW.claimed_by IS NOT NULL)
            OR (NEW.status = 'CLAIMED'::text) <> (NEW.lease_expires_at IS NOT NULL) THEN 'request_claim_fields'::text
        WHEN NEW.status <> 'FAILED'::text AND (NEW.status = 'PENDING'::text) <> (NEW.claimed_at IS NULL)
            THEN 'request_claimed_at'::text
        WHEN NEW.status <> 'FAILED'::text
            AND (NEW.status = ANY ('{DISPATCHED,COMPLETED}'::text[])) <> (NEW.dispatched_at IS NOT NULL)
            THEN 'request_dispatched_at'::text
        WHEN NEW.execution_id IS NULL AND NEW.status <> ALL ('{PENDING,FAILED}'::text[]) THEN 'request_execution'::text
        WHEN (NEW.status = ANY ('{COMPLETED,FAILED}'::text[])) <> (NEW.finished_at IS NOT NULL) THEN 'request_finished'::text
        WHEN (NEW.status = 'FAILED'::text) <> (NEW.failure_reason IS NOT NULL) OR NEW.failure_reason !~ '^[a-z_]{1,64}$'::text
            THEN 'request_failure_reason'::text
        WHEN NEW.dispatch_failures < 0 OR NEW.attempt_count < NEW.dispatch_failures THEN 'request_attempts'::text
        WHEN NEW.live_redrive_of <> NEW.redrive_of OR (NEW.live_redrive_of IS NOT NULL AND NEW.redrive_of IS NULL)
            THEN 'request_redrive'::text
        WHEN NEW.redrive_of IS NOT NULL AND (NEW.live_redrive_of IS NULL) <> (NEW.finished_at IS NOT NULL)
            THEN 'request_live_redrive'::text
        WHEN NEW.cancel_requested_at IS NULL AND (NEW.cancel_force OR NEW.cancel_told_at IS NOT NULL) THEN 'request_cancel'::text
        WHEN NEW.bytes < 0 OR NEW.execution_bytes < 0 THEN 'request_bytes'::text
        WHEN pg_catalog.num_nulls(NEW.crashes, NEW.crashes_alone, NEW.crashed_process) <> ALL ('{0,3}'::integer[])
            OR NEW.crashes < 1 OR NEW.crashes_alone < 0 OR NEW.crashes_alone > NEW.crashes THEN 'request_crashes'::text
        WHEN NEW.priority < -1000 OR NEW.priority > 1000 THEN 'request_priority'::text
        WHEN NEW.idempotency_key = ''::text OR pg_catalog.length(NEW.idempotency_key) > 255 THEN 'request_key_length'::text
        -- PostgreSQL accepts times that other programs cannot represent.
        WHEN NEW.run_at < '0001-01-01 00:00:00+00'::timestamptz OR NEW.run_at >= '9999-01-01 00:00:00+00'::timestamptz
            THEN 'request_run_at'::text
        WHEN NEW.dedupe_until >= '9999-01-01 00:00:00+00'::timestamptz THEN 'request_dedupe_until'::text
    END;
BEGIN
    IF violated IS NULL THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'write violates constraint "%" of table "%"', violated, TG_TABLE_NAME
        USING ERRCODE = 'check_violation', CONSTRAINT = violated, TABLE = TG_TABLE_NAME;
END
$$
