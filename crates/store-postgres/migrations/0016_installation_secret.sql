-- The secret of the installation, from which all instances derive the keys of their cursors. The first process creates it; the table has one row.

CREATE TABLE installation (
    id smallint NOT NULL DEFAULT 1,
    secret bytea NOT NULL,
    CONSTRAINT installation_pkey PRIMARY KEY (id),
    CONSTRAINT installation_once CHECK (id = 1),
    CONSTRAINT installation_secret CHECK (octet_length(secret) = 32)
);
