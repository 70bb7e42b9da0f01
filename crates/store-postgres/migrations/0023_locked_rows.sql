-- Isolation of locked rows: deltas are read like events, and lists of a queue have indexes. docs/adr/0023-isolation-of-locked-rows.md explains the design.

-- xid: the transaction that wrote the delta. A fold reads only the deltas that were not visible to the last one, so it scans neither the dead
-- ones, which an old snapshot keeps, nor those that it could not delete because another transaction had locked them.
ALTER TABLE workspace_delta
    ADD COLUMN id bigint GENERATED ALWAYS AS IDENTITY,
    ADD COLUMN xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    ADD CONSTRAINT workspace_delta_pkey PRIMARY KEY (xid, id);
-- Its primary key identifies a row for replication.
ALTER TABLE workspace_delta REPLICA IDENTITY DEFAULT;

-- For lists of a queue. job_fresh has the jobs without run_at.
CREATE INDEX job_scheduled ON job (queue_id, id) WHERE run_at IS NOT NULL;
