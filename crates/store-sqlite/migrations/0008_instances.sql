-- Server instances, and the secret of the installation.
-- compatible_from: 8

-- The processes that use this store, as of their last heartbeat.
CREATE TABLE instance (
    id TEXT NOT NULL,
    version TEXT NOT NULL,
    dispatches INTEGER NOT NULL,
    listens TEXT,
    started_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    CONSTRAINT instance_pkey PRIMARY KEY (id),
    CONSTRAINT instance_id_length CHECK (length(id) BETWEEN 1 AND 200),
    CONSTRAINT instance_dispatches CHECK (dispatches IN (0, 1))
) STRICT;

CREATE INDEX instance_seen ON instance (seen_at);

-- The secret from which the keys of cursors are derived. The first process creates it; the table has one row.
CREATE TABLE installation (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    secret BLOB NOT NULL CHECK (length(secret) = 32)
) STRICT;
