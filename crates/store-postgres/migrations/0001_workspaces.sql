-- Workspaces, and their turn rows, which admissions and limit changes both write.
-- compatible_from: 1

-- max_pending, max_open_bytes: the quotas. docs/adr/0017-quotas-in-the-store.md explains them.
CREATE TABLE {schema}.workspace (
    id uuid NOT NULL,
    name text NOT NULL,
    plan text NOT NULL,
    limit_override integer,
    concurrency_limit integer NOT NULL GENERATED ALWAYS AS (
        coalesce(limit_override, CASE plan WHEN 'FREE' THEN 1 WHEN 'PRO' THEN 5 ELSE 20 END)
    ) STORED,
    max_pending_override bigint,
    max_pending bigint NOT NULL GENERATED ALWAYS AS (coalesce(max_pending_override, 1000000)) STORED,
    max_open_bytes_override bigint,
    max_open_bytes bigint NOT NULL GENERATED ALWAYS AS (
        coalesce(max_open_bytes_override, CASE plan WHEN 'FREE' THEN 67108864 WHEN 'PRO' THEN 536870912 ELSE 4294967296 END)
    ) STORED,
    paused boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    deleted_at timestamptz,
    CONSTRAINT workspace_pkey PRIMARY KEY (id),
    CONSTRAINT workspace_name_length CHECK (length(name) BETWEEN 1 AND 200),
    CONSTRAINT workspace_plan CHECK (plan IN ('FREE', 'PRO', 'ENTERPRISE')),
    CONSTRAINT workspace_limit_range CHECK (limit_override BETWEEN 0 AND 100000),
    CONSTRAINT workspace_max_pending CHECK (max_pending_override BETWEEN 0 AND 1000000000),
    CONSTRAINT workspace_max_open_bytes CHECK (max_open_bytes_override BETWEEN 0 AND 1099511627776)
);

CREATE UNIQUE INDEX workspace_name ON {schema}.workspace (name) WHERE deleted_at IS NULL;

-- Numbers the admissions of all workspaces.
CREATE SEQUENCE {schema}.admission_number;

-- One row a workspace.
-- turn: the position in the round, which is the number of the last admission; the lowest is served next.
-- ready, has_work, has_room: may be true without cause, which costs one examination, but are never false by mistake. A
-- transaction that clears one holds the row lock and sees every transaction that wrote the row (written_by). They are
-- derived from the event log; after manual changes without events, leasehold_rebuild() repairs them.
-- oldest_admission: no RUNNING execution of the workspace has a lower number, except those in stragglers.
-- held_at_most: an upper bound of the RUNNING executions. Admission raises it; the end of an execution does not lower
-- it. Only when it leaves no room are the executions counted, and then it is set to the count.
-- pending to failed, open_bytes: folded from the event log.
-- line_*: no request in the workspace's line comes before this key.
-- The primary key ends in turn, which every claim raises: an index scan from the end finds the newest version of a row in
-- one step, however many dead versions an old snapshot keeps.
CREATE TABLE {schema}.workspace_turn (
    workspace_id uuid NOT NULL,
    concurrency_limit integer NOT NULL,
    paused boolean NOT NULL,
    deleted boolean NOT NULL DEFAULT false,
    ready boolean NOT NULL DEFAULT false,
    has_work boolean NOT NULL DEFAULT false,
    has_room boolean NOT NULL DEFAULT true,
    turn bigint NOT NULL DEFAULT 0,
    oldest_admission bigint NOT NULL DEFAULT 0,
    stragglers bigint[] NOT NULL DEFAULT '{}',
    held_at_most bigint NOT NULL DEFAULT 0,
    line_rank smallint NOT NULL DEFAULT -32768,
    line_at timestamptz NOT NULL DEFAULT '-infinity',
    line_id uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    pending bigint NOT NULL DEFAULT 0,
    claimed bigint NOT NULL DEFAULT 0,
    dispatched bigint NOT NULL DEFAULT 0,
    completed bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    open_bytes bigint NOT NULL DEFAULT 0,
    written_by xid8 NOT NULL DEFAULT pg_current_xact_id(),
    CONSTRAINT workspace_turn_pkey PRIMARY KEY (workspace_id, turn),
    CONSTRAINT workspace_turn_limit_range CHECK (concurrency_limit BETWEEN 0 AND 100000),
    CONSTRAINT workspace_turn_paused CHECK (NOT (ready AND paused AND NOT deleted))
) WITH (fillfactor = 70);

CREATE INDEX workspace_turn_ready ON {schema}.workspace_turn (turn, workspace_id) WHERE ready;

-- Changes for turn rows that are not in the event log: a request became due, the workspace changed (anew: examine its line
-- from the beginning), rows were pruned, or the turn row was locked when its events were folded. The next fold applies and
-- deletes them.
-- xid: the transaction that wrote the delta. A fold reads only the deltas that the last one did not see, so it scans neither the dead ones,
-- which an old snapshot keeps, nor those that it could not delete because another transaction had locked them.
CREATE TABLE {schema}.workspace_delta (
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    workspace_id uuid NOT NULL,
    anew boolean NOT NULL DEFAULT false,
    room boolean NOT NULL DEFAULT false,
    rank smallint,
    line_at timestamptz,
    pending bigint NOT NULL DEFAULT 0,
    claimed bigint NOT NULL DEFAULT 0,
    dispatched bigint NOT NULL DEFAULT 0,
    completed bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    open_bytes bigint NOT NULL DEFAULT 0,
    CONSTRAINT workspace_delta_pkey PRIMARY KEY (xid, id)
);

-- Bytes of all definitions and versions of a workspace, also of deleted ones: nothing deletes them from the store.
CREATE TABLE {schema}.workspace_catalog (
    workspace_id uuid NOT NULL,
    bytes bigint NOT NULL,
    CONSTRAINT workspace_catalog_pkey PRIMARY KEY (workspace_id),
    CONSTRAINT workspace_catalog_workspace FOREIGN KEY (workspace_id) REFERENCES {schema}.workspace (id),
    CONSTRAINT workspace_catalog_bytes CHECK (bytes >= 0)
);

CREATE TRIGGER workspace_insert_turn AFTER INSERT ON {schema}.workspace
    FOR EACH ROW EXECUTE FUNCTION {schema}.leasehold_workspace_sync_turn();
CREATE TRIGGER workspace_update_turn AFTER UPDATE ON {schema}.workspace
    FOR EACH ROW
    WHEN (OLD.concurrency_limit IS DISTINCT FROM NEW.concurrency_limit
        OR OLD.paused IS DISTINCT FROM NEW.paused
        OR OLD.deleted_at IS DISTINCT FROM NEW.deleted_at)
    EXECUTE FUNCTION {schema}.leasehold_workspace_sync_turn();
CREATE TRIGGER workspace_is_kept BEFORE DELETE ON {schema}.workspace
    FOR EACH ROW EXECUTE FUNCTION {schema}.leasehold_refuse('workspace_is_kept');

CREATE TRIGGER workspace_turn_once BEFORE INSERT ON {schema}.workspace_turn
    FOR EACH ROW EXECUTE FUNCTION {schema}.leasehold_workspace_turn_once();
CREATE TRIGGER workspace_turn_is_kept BEFORE DELETE ON {schema}.workspace_turn
    FOR EACH ROW EXECUTE FUNCTION {schema}.leasehold_refuse('workspace_turn_is_kept');

CREATE TRIGGER workspace_turn_limit BEFORE UPDATE ON {schema}.workspace_turn
    FOR EACH ROW WHEN (OLD.concurrency_limit <> NEW.concurrency_limit OR OLD.paused <> NEW.paused
        OR OLD.deleted <> NEW.deleted)
    EXECUTE FUNCTION {schema}.leasehold_workspace_turn_limit();
CREATE TRIGGER workspace_turn_stays BEFORE UPDATE ON {schema}.workspace_turn
    FOR EACH ROW WHEN (OLD.workspace_id <> NEW.workspace_id)
    EXECUTE FUNCTION {schema}.leasehold_refuse('workspace_turn_once');
