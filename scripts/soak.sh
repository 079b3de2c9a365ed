#!/bin/sh
# Runs the example with many orders, many edits and many kills, for fresh seeds on SQLite and on
# PostgreSQL, and stops at the first audit that finds anything. The seed chooses the mode: webhooks and sweeps,
# webhooks alone, sweeps alone, a ledger that is lost half-way, or books that are out of order for a while. One line of JSON per run. What a failed run leaves (its ledger, its errors) is kept under bin/.
#
#   RUNS=20              how many fresh seeds
#   SEEDS="7 4711"       these seeds instead
#   ORDERS=2000 KILLS=50
#   STALLS=5             how often a process is stopped for twice its lease (SIGSTOP), and goes on
#   PROCESSES=3          sync processes that share a PostgreSQL
#   LEDGERS="sqlite postgres"
#   MODE=-lose-ledger    this mode, whatever the seed; "-" for webhooks and sweeps
#   JOBS=1               runs at the same time
set -eu
cd "$(dirname "$0")/.."

orders=${ORDERS:-2000}
kills=${KILLS:-50}
stalls=${STALLS:-5}
processes=${PROCESSES:-3}
program=$PWD/bin/orders-to-accounting

fresh_seed() { od -An -N4 -tu4 /dev/urandom | tr -d ' '; }

# mode SEED: the flag of its mode.
mode() {
	case ${MODE:-$(($1 % 5))} in
	0 | -) echo -tamper ;; # which is the default
	1) echo -webhooks-only ;;
	2) echo -reconcile-only ;;
	3) echo -lose-ledger ;;
	4) echo -outage ;;
	*) echo "$MODE" ;;
	esac
}

# run LEDGER SEED: one run in $work.
run() {
	kind=$1
	set -- -orders "$orders" -kills "$kills" -stalls "$stalls" -seed "$2" -edits 0.3 "$(mode "$2")" -json
	case $kind in
	sqlite) TMPDIR=$work "$program" "$@" -workers 1 -db "$work/ledger.db" ;;
	postgres)
		# The quoted variables are for the inner shell, which has the database. It
		# goes away with that shell, so a failed run is dumped there.
		# shellcheck disable=SC2016
		bin/withpostgres -fresh sh -c '
			dump=$0
			"$@" -db "$AMENDS_TEST_POSTGRES" && exit
			status=$?
			pg_dump "$AMENDS_TEST_POSTGRES" >"$dump" || echo "no dump of the ledger" >&2
			exit $status' \
			"$work/ledger.sql" env TMPDIR="$work" "$program" "$@" -workers "$processes"
		;;
	*) echo "unknown ledger $kind: sqlite or postgres" >&2 && return 2 ;;
	esac
}

# one LEDGER SEED: one run with its line, in a process of its own. Its end with 255
# tells xargs to begin no other.
one() {
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	trap 'exit 255' INT TERM
	if run "$1" "$2" >"$work/line" 2>"$work/errors"; then
		echo "ledger=$1 seed=$2 $(cat "$work/line")"
		return
	fi
	echo "ledger=$1 seed=$2 FAILED $(cat "$work/line")"
	tail -n 50 "$work/errors" >&2
	kept=bin/soak-$1-$2
	mkdir -p "$kept" && cp -r "$work"/* "$kept"
	echo "kept in $kept: $(ls "$kept" | tr '\n' ' ')" >&2
	echo "again: SEEDS=$2 LEDGERS=$1 MODE=$(mode "$2") ORDERS=$orders KILLS=$kills STALLS=$stalls make soak" >&2
	exit 255
}

if [ "${1:-}" = one ]; then
	one "$2" "$3"
	exit
fi

go build -o "$program" ./examples/orders-to-accounting
seeds=${SEEDS:-$(i=0; while [ "$i" -lt "${RUNS:-20}" ]; do fresh_seed; i=$((i + 1)); done)}
runs=$(for seed in $seeds; do for ledger in ${LEDGERS:-sqlite postgres}; do echo "$ledger $seed"; done; done)
echo "$runs" | xargs -P "${JOBS:-1}" -n 2 scripts/soak.sh one || exit 1
echo "soak: $(echo "$runs" | wc -l | tr -d ' ') runs, all clean"
