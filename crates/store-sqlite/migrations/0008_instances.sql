-- Server instances, the secret of the installation, and the epochs of the file.
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

-- The epochs of the file: each process that opens it begins one. A copy that is restored continues from an older position, so cursors of what came
-- after it are recognized. number: their order. id: random. start_position: the last event when it began.
CREATE TABLE epoch (
    number INTEGER NOT NULL,
    id INTEGER NOT NULL,
    start_position INTEGER NOT NULL,
    opened_at INTEGER NOT NULL,
    CONSTRAINT epoch_pkey PRIMARY KEY (number),
    CONSTRAINT epoch_id UNIQUE (id)
) STRICT;
