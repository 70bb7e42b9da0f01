-- Records every change of a lease page and of a limit, with its transaction.
CREATE TABLE test_change (
    id bigserial PRIMARY KEY,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    -- claimed, changed, deleted: a page; queue_limit, limit: a limit.
    what text NOT NULL,
    queue_id integer,
    token bigint,
    worker text,
    claimed_at timestamptz,
    expires_at timestamptz,
    ids bigint[],
    max_running integer
);

CREATE FUNCTION test_record_page() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    page job_lease := CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
BEGIN
    INSERT INTO test_change (what, queue_id, token, worker, claimed_at, expires_at, ids)
    VALUES (CASE TG_OP WHEN 'INSERT' THEN 'claimed' WHEN 'UPDATE' THEN 'changed' ELSE 'deleted' END,
        page.queue_id, page.token, page.worker, page.claimed_at, page.expires_at, page.ids);
    RETURN NULL;
END
$$;

CREATE TRIGGER test_record_page AFTER INSERT OR UPDATE OR DELETE ON job_lease
    FOR EACH ROW EXECUTE FUNCTION test_record_page();

CREATE FUNCTION test_record_queue_limit() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO test_change (what, queue_id, max_running) VALUES ('queue_limit', NEW.id, NEW.max_running);
    RETURN NULL;
END
$$;

CREATE TRIGGER test_record_queue_limit AFTER INSERT OR UPDATE ON queue
    FOR EACH ROW EXECUTE FUNCTION test_record_queue_limit();

CREATE FUNCTION test_record_limit() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO test_change (what, max_running) VALUES ('limit', NEW.max_running);
    RETURN NULL;
END
$$;

CREATE TRIGGER test_record_limit AFTER UPDATE ON job_limit
    FOR EACH ROW EXECUTE FUNCTION test_record_limit();
