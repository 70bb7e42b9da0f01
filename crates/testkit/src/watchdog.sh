# Runs one server for as long as the process that started this shell (its owner) lives.
#
#   sh -c "$(cat watchdog.sh)" sh DIRECTORY SIGNAL COMMAND [arguments of the command]
#
# The watchdog starts the server and prints its pid, then reads standard input. A signal name stops the server with that
# signal and keeps the directory; a second line says that another watchdog has taken over the directory. When standard
# input closes, the owner has exited: the watchdog stops the server with SIGNAL and removes the directory.
directory=$1
signal=$2
shift 2

# The server and its children inherit our standard output as descriptor 3. The owner reads end-of-file only when the last
# of them has exited, and then the next server can use the directory.
"$@" 3>&1 >>"$directory/log" 2>&1 </dev/null &
server=$!
echo "$server"
exec >/dev/null 2>&1

if read -r command; then
    kill -s "$command" "$server"
    wait "$server"
    read -r _ || rm -rf "$directory"
else
    # Retry: a server that has just started does not handle signals yet.
    tries=0
    while kill -s "$signal" "$server" && [ "$tries" -lt 50 ]; do
        tries=$((tries + 1))
        sleep 0.2
    done
    kill -s KILL "$server"
    wait "$server"
    rm -rf "$directory"
fi
