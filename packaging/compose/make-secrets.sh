#!/bin/sh
# Makes the secrets that compose.yaml names: a password for PostgreSQL, and the setting that has it in it.
# Leaves alone what is there.
set -eu
cd "$(dirname "$0")"

# Nobody else on this machine gets into the folder. Its files are readable to all, because each service reads them as a user of its own.
mkdir -p secrets
chmod 0700 secrets
umask 0022

if [ -e secrets/postgres_password ]; then
    echo "secrets/postgres_password is there already; PostgreSQL keeps the password that it began with" >&2
else
    od -An -N24 -tx1 /dev/urandom | tr -d ' \n' > secrets/postgres_password
fi

# The network between the two is the machine's own, so there is no TLS on it.
printf '[store]\nurl = "postgres://leasehold:%s@postgres/leasehold?sslmode=disable"\n' \
    "$(cat secrets/postgres_password)" > secrets/store.toml
