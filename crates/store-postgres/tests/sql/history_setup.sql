-- Makes the database record every change of a limit, and the folded snapshot with each event.
CREATE TABLE leasehold.test_limit (
    id bigserial PRIMARY KEY,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    workspace_id uuid NOT NULL,
    concurrency_limit integer NOT NULL,
    paused boolean NOT NULL
);

CREATE FUNCTION leasehold.test_limit_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO leasehold.test_limit (workspace_id, concurrency_limit, paused) VALUES (NEW.id, NEW.concurrency_limit, NEW.paused);
    RETURN NULL;
END
$$;

CREATE TRIGGER test_limit_note AFTER INSERT OR UPDATE ON leasehold.workspace
    FOR EACH ROW EXECUTE FUNCTION leasehold.test_limit_note();

CREATE FUNCTION leasehold.test_seen() RETURNS pg_snapshot LANGUAGE sql STABLE AS $$
    SELECT position FROM leasehold.request_fold ORDER BY id DESC LIMIT 1
$$;

ALTER TABLE leasehold.request_event ADD COLUMN test_seen pg_snapshot DEFAULT leasehold.test_seen();
