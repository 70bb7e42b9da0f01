-- Groups of jobs: who takes turns in a queue. docs/adr/0027-groups-of-jobs.md explains the design.
-- compatible_from: 9

-- group_limit: how many jobs of one group may run at once.
ALTER TABLE {schema}.queue ADD COLUMN group_limit integer;
ALTER TABLE {schema}.queue ADD CONSTRAINT queue_group_limit CHECK (group_limit >= 0);

-- group_name: the group that the job takes turns with.
ALTER TABLE {schema}.job ADD COLUMN group_name text;
ALTER TABLE {schema}.job ADD CONSTRAINT job_group_name CHECK (octet_length(group_name) BETWEEN 1 AND 128);

-- groups: the group of each entry, '' for none; NULL in queues without groups.
ALTER TABLE {schema}.job_lease ADD COLUMN groups text[];

-- Jobs with a group have a row from the start, with the number of the transaction that inserted it or made it ready (plus job_xid_offset).
ALTER TABLE {schema}.job_waiting ADD COLUMN group_name text, ADD COLUMN xid xid8;
DROP INDEX {schema}.job_waiting_ready;
CREATE INDEX job_waiting_ready ON {schema}.job_waiting (queue_id, priority, created_at, job_id) WHERE ready AND group_name IS NULL;
CREATE INDEX job_waiting_group ON {schema}.job_waiting (queue_id, group_name, (-priority), created_at, job_id) WHERE ready AND group_name IS NOT NULL;
CREATE INDEX job_waiting_new ON {schema}.job_waiting (queue_id, xid, job_id) WHERE ready AND group_name IS NOT NULL;

-- The groups of queues with groups that may have a job due, or have running jobs in a queue with a group_limit. Rows are replaced: the highest version is valid.
-- group_name: '' is the group of jobs without one. turn: ready groups give one job each in this order. from_*: no ready job is at or before this key.
-- has_jobs: whether a job may be due. ready: has_jobs, and fewer jobs run than group_limit. running: 0 in queues without group_limit.
-- leftover: whether an earlier version may remain, because another transaction had locked it; then the row stays until it is pruned.
CREATE TABLE {schema}.job_group (
    queue_id integer NOT NULL,
    group_name text NOT NULL,
    version bigint NOT NULL,
    turn bigint NOT NULL,
    from_created_at timestamptz NOT NULL DEFAULT '-infinity',
    from_id bigint NOT NULL DEFAULT 0,
    running integer NOT NULL DEFAULT 0,
    from_rank smallint NOT NULL DEFAULT -32768,
    has_jobs boolean NOT NULL,
    ready boolean NOT NULL,
    leftover boolean NOT NULL DEFAULT false,
    CONSTRAINT job_group_pkey PRIMARY KEY (queue_id, group_name, version)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX job_group_turn ON {schema}.job_group (queue_id, turn) WHERE ready;

-- The round of each queue with groups; the highest version is valid. at_*, late_xid: the waiting rows that are folded. ends_*: the ends that are folded.
-- round_from: no ready group has a lower turn. last_number: the last version or turn. recount_after: see leasehold_job_recount.
CREATE TABLE {schema}.job_round (
    queue_id integer NOT NULL,
    version bigint NOT NULL,
    at_xid xid8 NOT NULL,
    at_id bigint NOT NULL,
    late_xid xid8[] NOT NULL,
    ends_xid xid8 NOT NULL,
    ends_late xid8[] NOT NULL,
    round_from bigint NOT NULL,
    last_number bigint NOT NULL,
    group_limit integer,
    recount_after xid8,
    CONSTRAINT job_round_pkey PRIMARY KEY (queue_id, version)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE SEQUENCE {schema}.job_group_end_id;

-- Leases that have ended in queues with a group_limit, until they are folded. job_id: the lowest of the jobs.
CREATE TABLE {schema}.job_group_end (
    queue_id integer NOT NULL,
    ended integer NOT NULL,
    xid xid8 NOT NULL,
    id bigint NOT NULL DEFAULT nextval('{schema}.job_group_end_id'),
    job_id bigint NOT NULL,
    group_name text NOT NULL,
    CONSTRAINT job_group_end_pkey PRIMARY KEY (queue_id, xid, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
