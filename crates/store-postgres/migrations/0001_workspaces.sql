-- Workspaces, and the one row of each that admission and a change of its limit both write.

CREATE TABLE workspace (
    id uuid NOT NULL,
    name text NOT NULL,
    plan text NOT NULL,
    limit_override integer,
    concurrency_limit integer NOT NULL GENERATED ALWAYS AS (
        coalesce(limit_override, CASE plan WHEN 'FREE' THEN 1 WHEN 'PRO' THEN 5 ELSE 20 END)
    ) STORED,
    paused boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    deleted_at timestamptz,
    CONSTRAINT workspace_pkey PRIMARY KEY (id),
    CONSTRAINT workspace_name_length CHECK (length(name) BETWEEN 1 AND 200),
    CONSTRAINT workspace_plan CHECK (plan IN ('FREE', 'PRO', 'ENTERPRISE')),
    CONSTRAINT workspace_limit_range CHECK (limit_override BETWEEN 0 AND 100000)
);

CREATE UNIQUE INDEX workspace_name ON workspace (name) WHERE deleted_at IS NULL;

-- Every admission of any workspace takes the next number.
CREATE SEQUENCE admission_number;

-- One row a workspace. turn: its place in the round, the number of its last admission; whoever has the lowest is
-- served next.
-- ready, has_work and has_room may be true for nothing, which costs a look, but are never false by mistake: whoever
-- clears one holds the row and has seen every transaction that wrote it (written_by). They follow the event log; after
-- requests or executions were changed by hand without their events, leasehold_rebuild() sets all of it right.
-- oldest_admission: no RUNNING execution of the workspace has a lower number, but for those in stragglers, so that
-- nothing else below it need be looked at.
-- held_at_most: at least as many as there are RUNNING executions. Admission raises it, the end of an execution does
-- not lower it; only where it leaves no room are the executions counted, which sets it to the truth.
-- line_*: no request that waits in the workspace's line comes before this key.
-- The key ends in turn, which every claim raises: the newest version of a row is found in one step from the end,
-- however many dead ones an old snapshot keeps before it.
CREATE TABLE workspace_turn (
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
    written_by xid8 NOT NULL DEFAULT pg_current_xact_id(),
    CONSTRAINT workspace_turn_pkey PRIMARY KEY (workspace_id, turn),
    CONSTRAINT workspace_turn_limit_range CHECK (concurrency_limit BETWEEN 0 AND 100000),
    CONSTRAINT workspace_turn_paused CHECK (NOT (ready AND paused AND NOT deleted))
) WITH (fillfactor = 70);

CREATE INDEX workspace_turn_ready ON workspace_turn (turn, workspace_id) WHERE ready;

-- What is still to be brought into a turn row besides the events of requests: a request became due, the workspace itself
-- changed (anew: look from the beginning of its line), rows were pruned, or the turn row was busy when its events were
-- folded. The next fold takes it up and empties the table.
CREATE TABLE workspace_delta (
    workspace_id uuid NOT NULL,
    anew boolean NOT NULL DEFAULT false,
    room boolean NOT NULL DEFAULT false,
    rank smallint,
    line_at timestamptz,
    pending bigint NOT NULL DEFAULT 0,
    claimed bigint NOT NULL DEFAULT 0,
    dispatched bigint NOT NULL DEFAULT 0,
    completed bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0
);

CREATE TRIGGER workspace_insert_turn AFTER INSERT ON workspace
    FOR EACH ROW EXECUTE FUNCTION leasehold_workspace_follow();
CREATE TRIGGER workspace_update_turn AFTER UPDATE ON workspace
    FOR EACH ROW
    WHEN (OLD.concurrency_limit IS DISTINCT FROM NEW.concurrency_limit
        OR OLD.paused IS DISTINCT FROM NEW.paused
        OR OLD.deleted_at IS DISTINCT FROM NEW.deleted_at)
    EXECUTE FUNCTION leasehold_workspace_follow();
CREATE TRIGGER workspace_is_kept BEFORE DELETE ON workspace
    FOR EACH ROW EXECUTE FUNCTION leasehold_refuse('workspace_is_kept');

CREATE TRIGGER workspace_turn_once BEFORE INSERT ON workspace_turn
    FOR EACH ROW EXECUTE FUNCTION leasehold_workspace_turn_once();
CREATE TRIGGER workspace_turn_is_kept BEFORE DELETE ON workspace_turn
    FOR EACH ROW EXECUTE FUNCTION leasehold_refuse('workspace_turn_is_kept');

CREATE TRIGGER workspace_turn_limit BEFORE UPDATE ON workspace_turn
    FOR EACH ROW WHEN (OLD.concurrency_limit <> NEW.concurrency_limit OR OLD.paused <> NEW.paused
        OR OLD.deleted <> NEW.deleted)
    EXECUTE FUNCTION leasehold_workspace_turn_limit();
CREATE TRIGGER workspace_turn_stays BEFORE UPDATE ON workspace_turn
    FOR EACH ROW WHEN (OLD.workspace_id <> NEW.workspace_id)
    EXECUTE FUNCTION leasehold_refuse('workspace_turn_once');
