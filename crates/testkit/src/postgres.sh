# Runs a PostgreSQL server; initializes the cluster first if the data directory is empty.
#
#   sh -c "$(cat postgres.sh)" sh PROGRAMS DATA [options for postgres]
programs=$1
data=$2
shift 2

if [ ! -e "$data/PG_VERSION" ]; then
    "$programs/initdb" -D "$data" -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync || exit 1
fi
exec "$programs/postgres" -D "$data" "$@"
