-- Server instances, and the secret of the installation.
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
