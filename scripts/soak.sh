#!/bin/sh
# Runs the example with many orders and many kills, for fresh seeds on SQLite and on
# PostgreSQL, and stops at the first audit that finds anything. One line of JSON per
# run. What a failed run leaves (its ledger, its errors) is kept under bin/.
#
#   RUNS=20              how many fresh seeds
#   SEEDS="7 4711"       these seeds instead
#   ORDERS=2000 KILLS=50
#   PROCESSES=3          sync processes that share a PostgreSQL
#   LEDGERS="sqlite postgres"
set -eu
cd "$(dirname "$0")/.."

runs=${RUNS:-20}
orders=${ORDERS:-2000}
kills=${KILLS:-50}
processes=${PROCESSES:-3}
ledgers=${LEDGERS:-sqlite postgres}

fresh_seed() { od -An -N4 -tu4 /dev/urandom | tr -d ' '; }
seeds=${SEEDS:-$(i=0; while [ "$i" -lt "$runs" ]; do fresh_seed; i=$((i + 1)); done)}

program=$PWD/bin/orders-to-accounting
go build -o "$program" ./examples/orders-to-accounting

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# run LEDGER SEED: one run.
run() {
	kind=$1
	set -- -orders "$orders" -kills "$kills" -seed "$2" -json
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

done=0
for seed in $seeds; do
	for ledger in $ledgers; do
		printf 'ledger=%s seed=%s ' "$ledger" "$seed"
		if ! run "$ledger" "$seed" 2>"$work/errors"; then
			echo FAILED
			tail -n 50 "$work/errors" >&2
			kept=bin/soak-$ledger-$seed
			mkdir -p "$kept" && cp -r "$work"/* "$kept"
			echo "kept in $kept: $(ls "$kept" | tr '\n' ' ')" >&2
			echo "again: SEEDS=$seed LEDGERS=$ledger ORDERS=$orders KILLS=$kills make soak" >&2
			exit 1
		fi
		rm -rf "$work"/*
		done=$((done + 1))
	done
done
echo "soak: $done runs, all clean"
