-- Workspaces, and their turn rows, which admissions and limit changes both write.
-- compatible_from: 1

-- max_pending, max_open_bytes: the quotas. docs/adr/0017-quotas-in-the-store.md explains them.
CREATE TABLE workspace (
    id BLOB NOT NULL,
    name TEXT NOT NULL,
    plan TEXT NOT NULL,
    limit_override INTEGER,
    concurrency_limit INTEGER NOT NULL GENERATED ALWAYS AS (
        coalesce(limit_override, CASE plan WHEN 'FREE' THEN 1 WHEN 'PRO' THEN 5 ELSE 20 END)
    ) VIRTUAL,
    max_pending_override INTEGER,
    max_pending INTEGER NOT NULL GENERATED ALWAYS AS (coalesce(max_pending_override, 1000000)) VIRTUAL,
    max_open_bytes_override INTEGER,
    max_open_bytes INTEGER NOT NULL GENERATED ALWAYS AS (
        coalesce(max_open_bytes_override, CASE plan WHEN 'FREE' THEN 67108864 WHEN 'PRO' THEN 536870912 ELSE 4294967296 END)
    ) VIRTUAL,
    paused INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER,
    CONSTRAINT workspace_pkey PRIMARY KEY (id),
    CONSTRAINT workspace_id_length CHECK (length(id) = 16),
    CONSTRAINT workspace_name_length CHECK (length(name) BETWEEN 1 AND 200),
    CONSTRAINT workspace_plan CHECK (plan IN ('FREE', 'PRO', 'ENTERPRISE')),
    CONSTRAINT workspace_limit_range CHECK (limit_override BETWEEN 0 AND 100000),
    CONSTRAINT workspace_max_pending CHECK (max_pending_override BETWEEN 0 AND 1000000000),
    CONSTRAINT workspace_max_open_bytes CHECK (max_open_bytes_override BETWEEN 0 AND 1099511627776),
    CONSTRAINT workspace_paused CHECK (paused IN (0, 1))
) STRICT;

CREATE UNIQUE INDEX workspace_name ON workspace (name) WHERE deleted_at IS NULL;

-- Numbers the admissions of all workspaces: each takes the next number.
CREATE TABLE admission_number (
    id INTEGER NOT NULL PRIMARY KEY DEFAULT 1,
    last INTEGER NOT NULL,
    CONSTRAINT admission_number_once CHECK (id = 1)
) STRICT;

INSERT INTO admission_number (last) VALUES (0);

-- One row a workspace. Triggers maintain the columns, so they are correct for every writer.
-- turn: the position in the round, which is the number of the last admission; the lowest is served next.
-- waiting: how many requests are in the line: PENDING, due, without an execution.
-- has_room: whether a slot is free, that is, the next slot number is below the limit.
-- open_bytes: the sum of bytes and execution_bytes of the open requests.
CREATE TABLE workspace_turn (
    workspace_id BLOB NOT NULL,
    concurrency_limit INTEGER NOT NULL,
    paused INTEGER NOT NULL,
    deleted INTEGER NOT NULL DEFAULT 0,
    turn INTEGER NOT NULL DEFAULT 0,
    waiting INTEGER NOT NULL DEFAULT 0,
    has_room INTEGER NOT NULL,
    ready INTEGER NOT NULL GENERATED ALWAYS AS (
        waiting > 0 AND (deleted = 1 OR (has_room = 1 AND paused = 0))
    ) VIRTUAL,
    pending INTEGER NOT NULL DEFAULT 0,
    claimed INTEGER NOT NULL DEFAULT 0,
    dispatched INTEGER NOT NULL DEFAULT 0,
    completed INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    open_bytes INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT workspace_turn_pkey PRIMARY KEY (workspace_id),
    CONSTRAINT workspace_turn_workspace FOREIGN KEY (workspace_id) REFERENCES workspace (id),
    CONSTRAINT workspace_turn_limit_range CHECK (concurrency_limit BETWEEN 0 AND 100000)
) STRICT;

CREATE INDEX workspace_turn_ready ON workspace_turn (ready, turn) WHERE ready = 1;

-- Bytes of all definitions and versions of a workspace, also of deleted ones: nothing deletes them from the store.
CREATE TABLE workspace_catalog (
    workspace_id BLOB NOT NULL,
    bytes INTEGER NOT NULL,
    CONSTRAINT workspace_catalog_pkey PRIMARY KEY (workspace_id),
    CONSTRAINT workspace_catalog_workspace FOREIGN KEY (workspace_id) REFERENCES workspace (id),
    CONSTRAINT workspace_catalog_bytes CHECK (bytes >= 0)
) STRICT;

-- Triggers copy every change of a workspace to its turn row.
CREATE TRIGGER workspace_insert_turn AFTER INSERT ON workspace
BEGIN
    INSERT INTO workspace_turn (workspace_id, concurrency_limit, paused, deleted, has_room)
    VALUES (NEW.id, NEW.concurrency_limit, NEW.paused, NEW.deleted_at IS NOT NULL, NEW.concurrency_limit > 0);
END;

CREATE TRIGGER workspace_update_turn AFTER UPDATE OF plan, limit_override, paused, deleted_at ON workspace
BEGIN
    UPDATE workspace_turn
    SET concurrency_limit = NEW.concurrency_limit, paused = NEW.paused, deleted = NEW.deleted_at IS NOT NULL
    WHERE workspace_id = NEW.id;
END;

CREATE TRIGGER workspace_is_kept BEFORE DELETE ON workspace
BEGIN
    SELECT RAISE(ABORT, 'workspace_is_kept');
END;
