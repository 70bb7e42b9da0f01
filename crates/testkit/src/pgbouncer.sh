# Runs a PgBouncer with this configuration, in the directory of the file.
#
#   sh -c "$(cat pgbouncer.sh)" sh PROGRAM FILE CONFIGURATION
printf '%s\n' "$3" >"$2" || exit 1
exec "$1" "$2"
