-- Rejects a request whose idempotency key is kept for a pruned request; for a trigger.
-- release: 1
-- Pruning keeps the key of a request and deletes the request in one transaction. An insert that waited for this transaction finds no
-- conflict and did not see the kept key. The snapshot of this trigger is newer: it finds the key, and the caller retries.
-- In a transaction with one snapshot for all statements, the attempt to keep the key fails if another transaction kept it meanwhile.
CREATE OR REPLACE FUNCTION {schema}.leasehold_check_kept_key() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
    IF pg_catalog.current_setting('transaction_isolation'::text) IN ('repeatable read'::text, 'serializable'::text) THEN
        INSERT INTO {schema}.kept_key (workspace_id, request_id, definition_id, dedupe_until, key, params_hash)
        VALUES (NEW.workspace_id, NEW.id, NEW.definition_id, NEW.created_at, NEW.idempotency_key,
            pg_catalog.sha256(''::bytea))
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            DELETE FROM {schema}.kept_key k WHERE k.workspace_id = NEW.workspace_id AND k.key = NEW.idempotency_key;
            RETURN NULL;
        END IF;
    END IF;
    PERFORM 1 FROM {schema}.kept_key k
    WHERE k.workspace_id = NEW.workspace_id AND k.key = NEW.idempotency_key AND k.dedupe_until > NEW.created_at;
    IF FOUND THEN
        RAISE EXCEPTION 'idempotency key "%" is kept for a pruned request; retry the transaction', NEW.idempotency_key
            USING ERRCODE = 'serialization_failure', CONSTRAINT = 'request_idempotency_key', TABLE = 'workflow_execution_queue';
    END IF;
    RETURN NULL;
END
$$
