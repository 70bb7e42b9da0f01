#!/bin/sh
# Creates the secrets for compose.yaml: a password for PostgreSQL, and a settings file with the store URL.
# Keeps an existing password.
set -eu
cd "$(dirname "$0")"

# Only the owner can enter the directory. Its files are world-readable, since each service reads them as its own user.
mkdir -p secrets
chmod 0700 secrets
umask 0022

if [ -e secrets/postgres_password ]; then
    echo "secrets/postgres_password is there already and is kept; PostgreSQL uses the password it was initialised with" >&2
else
    od -An -N24 -tx1 /dev/urandom | tr -d ' \n' > secrets/postgres_password
fi

# The network between the two containers is local to the machine, so it needs no TLS.
printf '[store]\nurl = "postgres://leasehold:%s@postgres/leasehold?sslmode=disable"\n' \
    "$(cat secrets/postgres_password)" > secrets/store.toml
