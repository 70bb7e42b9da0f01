-- Server instances, the secret of the installation, and the epochs of the database's history.
-- compatible_from: 8

-- As of their last heartbeat.
CREATE TABLE {schema}.instance (
    id text NOT NULL,
    version text NOT NULL,
    dispatches boolean NOT NULL,
    listens text,
    started_at timestamptz NOT NULL,
    seen_at timestamptz NOT NULL,
    CONSTRAINT instance_pkey PRIMARY KEY (id),
    CONSTRAINT instance_id_length CHECK (length(id) BETWEEN 1 AND 200)
) WITH (fillfactor = 50);

CREATE INDEX instance_seen ON {schema}.instance (seen_at);

-- The secret from which all instances derive the keys of their cursors. The first process creates it; the table has one row.
CREATE TABLE {schema}.installation (
    id smallint NOT NULL DEFAULT 1,
    secret bytea NOT NULL,
    CONSTRAINT installation_pkey PRIMARY KEY (id),
    CONSTRAINT installation_once CHECK (id = 1),
    CONSTRAINT installation_secret CHECK (octet_length(secret) = 32)
);

-- The epochs of the database's history. A process that meets an unknown server, timeline or cluster opens one, because numbers that were assigned
-- before may be assigned again. docs/adr/0025-epochs-and-schema.md explains the design.
-- id: random, because two clusters may open epochs and later replicate. number: their order; only the newest may be that of the present.
-- start_xid: no transaction of the epoch has a lower number. token_base: every fencing token of the epoch is higher.
-- job_xid_offset: added to transaction numbers in jobs and cursors of lines, so that those of every epoch are above those of other clusters.
-- first_event_id: events with lower ids have transaction numbers of another cluster; 0 for none.
-- mark_*: numbers that were assigned up to marked_at, for a later epoch in which no row has them any more.
CREATE TABLE {schema}.epoch (
    id bigint NOT NULL,
    number integer NOT NULL,
    system_identifier bigint NOT NULL,
    timeline integer NOT NULL,
    server_started_at timestamptz NOT NULL,
    database oid NOT NULL,
    cause text NOT NULL,
    start_xid xid8 NOT NULL,
    start_lsn pg_lsn NOT NULL,
    token_base bigint NOT NULL,
    job_xid_offset bigint NOT NULL,
    first_event_id bigint NOT NULL,
    opened_at timestamptz NOT NULL,
    opened_by text NOT NULL,
    mark_xid xid8 NOT NULL,
    mark_job_id bigint NOT NULL,
    mark_job_token bigint NOT NULL,
    mark_admission bigint NOT NULL,
    mark_event_id bigint NOT NULL,
    marked_at timestamptz NOT NULL,
    CONSTRAINT epoch_pkey PRIMARY KEY (id),
    CONSTRAINT epoch_cause CHECK (cause IN ('created', 'restarted', 'rewound', 'failed_over', 'copied', 'moved'))
) WITH (fillfactor = 50);

CREATE UNIQUE INDEX epoch_present ON {schema}.epoch (server_started_at, system_identifier, timeline, database, number);
CREATE INDEX epoch_newest ON {schema}.epoch (number, opened_at, id);
