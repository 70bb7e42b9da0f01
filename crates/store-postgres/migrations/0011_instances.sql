-- Server instances that use this store, as of their last heartbeat.

CREATE TABLE instance (
    id text NOT NULL,
    version text NOT NULL,
    dispatches boolean NOT NULL,
    listens text,
    started_at timestamptz NOT NULL,
    seen_at timestamptz NOT NULL,
    CONSTRAINT instance_pkey PRIMARY KEY (id),
    CONSTRAINT instance_id_length CHECK (length(id) BETWEEN 1 AND 200)
) WITH (fillfactor = 50);

CREATE INDEX instance_seen ON instance (seen_at);
