#!/bin/sh
# Sees to the programs that the tests use and Go does not bring along:
#
#   scripts/deps.sh gcc spin postgresql pgbouncer sqlite3 libfaketime chromium
#   scripts/deps.sh -have gcc             only asks, by its exit status
#
# What is missing is installed with apt-get where we are root and it exists.
# Elsewhere the script says which tests do without and how to install it. Where CI
# is set a missing program is an error, because there nothing may be skipped.
set -u
cd "$(dirname "$0")/.."

present() {
	case $1 in
	gcc) printf '#include <stdlib.h>\nint main(void) { return 0; }\n' | $(go env CC) -x c -o /dev/null - 2>/dev/null ;;
	postgresql) go run ./internal/pgtest/withpostgres -where >/dev/null 2>&1 ;;
	libfaketime) ls /usr/lib/*/faketime/libfaketimeMT.so.1 /usr/lib*/faketime/libfaketimeMT.so.1 2>/dev/null | grep -q . ;;
	*) command -v "$1" >/dev/null ;;
	esac
}

# What a program is for, to be read after "skipped:".
purpose() {
	case $1 in
	gcc) echo "the race detector and the model checker, which need a C compiler" ;;
	spin) echo "checking the protocol's model" ;;
	postgresql) echo "every test that needs PostgreSQL" ;;
	pgbouncer) echo "the test of a pooler before PostgreSQL" ;;
	sqlite3) echo "the test of a backup of a SQLite ledger" ;;
	libfaketime) echo "the test in which a server's clock steps" ;;
	chromium) echo "the test in which a person looks at the console in a browser" ;;
	*) echo "what needs $1" ;;
	esac
}

packages() {
	case $1 in
	gcc) echo "gcc libc6-dev" ;;
	*) echo "$1" ;;
	esac
}

install_packages() {
	export DEBIAN_FRONTEND=noninteractive
	# The binaries are all we want: no server that starts by itself.
	quiet=/etc/postgresql-common/createcluster.d/amends-no-server.conf
	case " $* " in *" postgresql "*)
		mkdir -p "${quiet%/*}" && echo "create_main_cluster = false" >"$quiet"
		;;
	esac
	apt-get install -y -q --no-install-recommends "$@" ||
		{ apt-get update -q && apt-get install -y -q --no-install-recommends "$@"; }
	rm -f "$quiet" && rmdir -p "${quiet%/*}" 2>/dev/null
}

if [ "${1:-}" = -have ]; then
	present "$2"
	exit
fi

wanted=
for program; do
	present "$program" || wanted="$wanted $(packages "$program")"
done
[ -n "$wanted" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "installing:$wanted"
	# shellcheck disable=SC2086 # a list of packages
	install_packages $wanted
fi

missing=
for program; do
	present "$program" && continue
	missing="$missing $program"
	echo "SKIPPED: $(purpose "$program"). To have it: sudo apt-get install $(packages "$program")"
done
if [ -n "$missing" ] && [ -n "${CI:-}" ]; then
	echo "CI is set, so nothing may be skipped, and these are missing:$missing" >&2
	exit 1
fi
