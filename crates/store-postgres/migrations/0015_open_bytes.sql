-- Quotas of a workspace: how many requests may be PENDING, and how many bytes its open requests and executions may have.
-- docs/adr/0017-quotas-in-the-store.md explains the design.

ALTER TABLE workspace
    ADD COLUMN max_pending_override bigint,
    ADD COLUMN max_pending bigint NOT NULL GENERATED ALWAYS AS (coalesce(max_pending_override, 1000000)) STORED,
    ADD COLUMN max_open_bytes_override bigint,
    ADD COLUMN max_open_bytes bigint NOT NULL GENERATED ALWAYS AS (
        coalesce(max_open_bytes_override, CASE plan WHEN 'FREE' THEN 67108864 WHEN 'PRO' THEN 536870912 ELSE 4294967296 END)
    ) STORED,
    ADD CONSTRAINT workspace_max_pending CHECK (max_pending_override BETWEEN 0 AND 1000000000),
    ADD CONSTRAINT workspace_max_open_bytes CHECK (max_open_bytes_override BETWEEN 0 AND 1099511627776);

-- bytes: what the request counts while it is open, from its enqueue on. execution_bytes: what its execution has added; NULL is 0. The sum
-- of both over the open requests of a workspace is its open_bytes.
ALTER TABLE workflow_execution_queue
    ADD COLUMN bytes integer NOT NULL DEFAULT 0,
    ADD COLUMN execution_bytes bigint,
    ADD CONSTRAINT request_bytes CHECK (bytes >= 0 AND execution_bytes >= 0);

-- bytes: what the transition adds to the open bytes of the workspace: positive when the request is enqueued, negative when it ends.
ALTER TABLE request_event ADD COLUMN bytes bigint;

-- open_bytes: folded from events and from workspace_delta, like the counts.
ALTER TABLE workspace_turn ADD COLUMN open_bytes bigint NOT NULL DEFAULT 0;
ALTER TABLE workspace_delta ADD COLUMN open_bytes bigint NOT NULL DEFAULT 0;
