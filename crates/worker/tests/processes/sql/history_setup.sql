-- Has the database note every change of a page of leases and of a limit, with its transaction.
CREATE TABLE test_change (
    id bigserial PRIMARY KEY,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    -- claimed, changed, gone: what happened to a page; queue_limit, limit: what was set.
    what text NOT NULL,
    queue_id integer,
    token bigint,
    worker text,
    claimed_at timestamptz,
    expires_at timestamptz,
    ids bigint[],
    max_running integer
);

CREATE FUNCTION test_page_note() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    page job_lease := CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
BEGIN
    INSERT INTO test_change (what, queue_id, token, worker, claimed_at, expires_at, ids)
    VALUES (CASE TG_OP WHEN 'INSERT' THEN 'claimed' WHEN 'UPDATE' THEN 'changed' ELSE 'gone' END,
        page.queue_id, page.token, page.worker, page.claimed_at, page.expires_at, page.ids);
    RETURN NULL;
END
$$;

CREATE TRIGGER test_page_note AFTER INSERT OR UPDATE OR DELETE ON job_lease
    FOR EACH ROW EXECUTE FUNCTION test_page_note();

CREATE FUNCTION test_queue_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO test_change (what, queue_id, max_running) VALUES ('queue_limit', NEW.id, NEW.max_running);
    RETURN NULL;
END
$$;

CREATE TRIGGER test_queue_note AFTER INSERT OR UPDATE ON queue
    FOR EACH ROW EXECUTE FUNCTION test_queue_note();

CREATE FUNCTION test_limit_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO test_change (what, max_running) VALUES ('limit', NEW.max_running);
    RETURN NULL;
END
$$;

CREATE TRIGGER test_limit_note AFTER UPDATE ON job_limit
    FOR EACH ROW EXECUTE FUNCTION test_limit_note();
