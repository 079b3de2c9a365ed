# Runs a private PostgreSQL cluster for as long as standard input stays open.
#
#   guard.sh BIN ROOT
#
# BIN holds initdb and pg_ctl. ROOT holds server.conf and is ours to remove.
# The first line of output is "ready", or what went wrong.

bin=$1
root=$2

finish() {
	"$bin/pg_ctl" -D "$root/data" -m immediate -w stop >/dev/null 2>&1
	cd / && rm -rf "$root"
}

fail() {
	echo "$1:"
	tail -n 20 "$root/log"
	exit 1
}

trap '' HUP INT QUIT PIPE # a Ctrl-C is for the program that started us
trap 'exit 1' TERM
trap finish EXIT

"$bin/initdb" -D "$root/data" -U postgres --auth=trust --encoding=UTF8 --locale=C --no-sync \
	>"$root/log" 2>&1 || fail "initdb failed"
echo "include '$root/server.conf'" >>"$root/data/postgresql.conf"
"$bin/pg_ctl" -D "$root/data" -l "$root/log" -w start >/dev/null 2>&1 || fail "the server did not start"
echo ready

read -r _ # returns when the pipe closes, whatever closed it
