-- Quotas of a workspace: how many requests may be PENDING, and how many bytes its open requests and executions may have.

ALTER TABLE workspace ADD COLUMN max_pending_override INTEGER
    CONSTRAINT workspace_max_pending CHECK (max_pending_override BETWEEN 0 AND 1000000000);
ALTER TABLE workspace ADD COLUMN max_pending INTEGER NOT NULL GENERATED ALWAYS AS (coalesce(max_pending_override, 1000000)) VIRTUAL;
ALTER TABLE workspace ADD COLUMN max_open_bytes_override INTEGER
    CONSTRAINT workspace_max_open_bytes CHECK (max_open_bytes_override BETWEEN 0 AND 1099511627776);
ALTER TABLE workspace ADD COLUMN max_open_bytes INTEGER NOT NULL GENERATED ALWAYS AS (
    coalesce(max_open_bytes_override, CASE plan WHEN 'FREE' THEN 67108864 WHEN 'PRO' THEN 536870912 ELSE 4294967296 END)
) VIRTUAL;

-- bytes: what the request counts while it is open, from its enqueue on. execution_bytes: what its execution has added. The sum of both
-- over the open requests of a workspace is its open_bytes.
ALTER TABLE workflow_execution_queue ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0 CONSTRAINT request_bytes CHECK (bytes >= 0);
ALTER TABLE workflow_execution_queue ADD COLUMN execution_bytes INTEGER NOT NULL DEFAULT 0
    CONSTRAINT request_execution_bytes CHECK (execution_bytes >= 0);

ALTER TABLE workspace_turn ADD COLUMN open_bytes INTEGER NOT NULL DEFAULT 0;

DROP TRIGGER request_insert_turn;
CREATE TRIGGER request_insert_turn AFTER INSERT ON workflow_execution_queue
BEGIN
    UPDATE workspace_turn
    SET pending = pending + 1, waiting = waiting + (NEW.due = 1 AND NEW.execution_id IS NULL),
        open_bytes = open_bytes + NEW.bytes + NEW.execution_bytes
    WHERE workspace_id = NEW.workspace_id;
END;

-- An ended request has no bytes; finished_at tells.
DROP TRIGGER request_update_turn;
CREATE TRIGGER request_update_turn AFTER UPDATE OF status, due, execution_id, bytes, execution_bytes ON workflow_execution_queue
WHEN OLD.status <> NEW.status OR OLD.due IS NOT NEW.due OR (OLD.execution_id IS NULL) <> (NEW.execution_id IS NULL)
    OR OLD.bytes <> NEW.bytes OR OLD.execution_bytes <> NEW.execution_bytes
BEGIN
    UPDATE workspace_turn
    SET pending = pending + (NEW.status = 'PENDING') - (OLD.status = 'PENDING'),
        claimed = claimed + (NEW.status = 'CLAIMED') - (OLD.status = 'CLAIMED'),
        dispatched = dispatched + (NEW.status = 'DISPATCHED') - (OLD.status = 'DISPATCHED'),
        completed = completed + (NEW.status = 'COMPLETED') - (OLD.status = 'COMPLETED'),
        failed = failed + (NEW.status = 'FAILED') - (OLD.status = 'FAILED'),
        waiting = waiting + (NEW.due IS 1 AND NEW.execution_id IS NULL) - (OLD.due IS 1 AND OLD.execution_id IS NULL),
        open_bytes = open_bytes + (NEW.finished_at IS NULL) * (NEW.bytes + NEW.execution_bytes)
            - (OLD.finished_at IS NULL) * (OLD.bytes + OLD.execution_bytes)
    WHERE workspace_id = NEW.workspace_id;
END;

DROP TRIGGER request_delete_turn;
CREATE TRIGGER request_delete_turn AFTER DELETE ON workflow_execution_queue
BEGIN
    UPDATE workspace_turn
    SET pending = pending - (OLD.status = 'PENDING'),
        claimed = claimed - (OLD.status = 'CLAIMED'),
        dispatched = dispatched - (OLD.status = 'DISPATCHED'),
        completed = completed - (OLD.status = 'COMPLETED'),
        failed = failed - (OLD.status = 'FAILED'),
        waiting = waiting - (OLD.due IS 1 AND OLD.execution_id IS NULL),
        open_bytes = open_bytes - (OLD.finished_at IS NULL) * (OLD.bytes + OLD.execution_bytes)
    WHERE workspace_id = OLD.workspace_id;
END;
