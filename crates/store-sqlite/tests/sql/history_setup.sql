-- Records every change of a limit, and the event before it.
CREATE TABLE test_limit (
    id INTEGER PRIMARY KEY,
    after_event INTEGER NOT NULL,
    workspace_id BLOB NOT NULL,
    concurrency_limit INTEGER NOT NULL,
    paused INTEGER NOT NULL
) STRICT;

CREATE TRIGGER test_limit_insert AFTER INSERT ON workspace_turn BEGIN
    INSERT INTO test_limit (after_event, workspace_id, concurrency_limit, paused)
    VALUES (coalesce((SELECT max(id) FROM request_event), 0), NEW.workspace_id, NEW.concurrency_limit, NEW.paused);
END;

CREATE TRIGGER test_limit_update AFTER UPDATE OF concurrency_limit, paused ON workspace_turn BEGIN
    INSERT INTO test_limit (after_event, workspace_id, concurrency_limit, paused)
    VALUES (coalesce((SELECT max(id) FROM request_event), 0), NEW.workspace_id, NEW.concurrency_limit, NEW.paused);
END;
