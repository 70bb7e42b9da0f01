-- The secret of the installation, from which the keys of cursors are derived. The first process creates it; the table has one row.

CREATE TABLE installation (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    secret BLOB NOT NULL CHECK (length(secret) = 32)
) STRICT;
