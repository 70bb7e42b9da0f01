# Runs one server for as long as the process that started this shell lives.
#
#   sh -c "$(cat watchdog.sh)" sh FOLDER SIGNAL COMMAND [arguments of the command]
#
# It starts the server and prints its pid. Then it reads orders: a signal name stops the server with that signal and
# keeps the folder; a second line says that another watchdog has taken the folder over. When standard input closes
# instead, the owner has ended, in whatever way: the server is stopped with SIGNAL and the folder removed.
folder=$1
signal=$2
shift 2

# The server and its children keep our standard output open as their descriptor 3: the owner sees its end only when
# the last of them is gone, which is when the next server can use the folder.
"$@" 3>&1 >>"$folder/log" 2>&1 </dev/null &
server=$!
echo "$server"
exec >/dev/null 2>&1

if read -r order; then
    kill -s "$order" "$server"
    wait "$server"
    read -r _ || rm -rf "$folder"
else
    # Asked again and again: a server that has only just started does not listen to signals yet.
    tries=0
    while kill -s "$signal" "$server" && [ "$tries" -lt 50 ]; do
        tries=$((tries + 1))
        sleep 0.2
    done
    kill -s KILL "$server"
    wait "$server"
    rm -rf "$folder"
fi
