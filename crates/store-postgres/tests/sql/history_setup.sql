-- Makes the database record every change of a limit, and the folded snapshot with each event.
CREATE TABLE test_limit (
    id bigserial PRIMARY KEY,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    workspace_id uuid NOT NULL,
    concurrency_limit integer NOT NULL,
    paused boolean NOT NULL
);

CREATE FUNCTION test_limit_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO test_limit (workspace_id, concurrency_limit, paused) VALUES (NEW.id, NEW.concurrency_limit, NEW.paused);
    RETURN NULL;
END
$$;

CREATE TRIGGER test_limit_note AFTER INSERT OR UPDATE ON workspace
    FOR EACH ROW EXECUTE FUNCTION test_limit_note();

CREATE FUNCTION test_seen() RETURNS pg_snapshot LANGUAGE sql STABLE AS $$
    SELECT position FROM request_fold ORDER BY id DESC LIMIT 1
$$;

ALTER TABLE request_event ADD COLUMN test_seen pg_snapshot DEFAULT test_seen();
