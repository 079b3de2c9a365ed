#!/bin/sh
# Asks govulncheck whether what amends calls has a known vulnerability. The database is the one of the Go project, and where that
# is not reached, its source as a Go module, which is a little older. Where neither is reached it says so.
#
# It fails for a module. What Go's own library has is mended by a newer Go: that is said, and is no fault of this code.
set -eu
cd "$(dirname "$0")/.."
export GOWORK=off # as users and releases have it

GOVULNCHECK=v1.9.0
govulncheck=$PWD/bin/govulncheck-$GOVULNCHECK

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

skip() {
	echo "SKIPPED: known vulnerabilities. $1"
	[ -z "${CI:-}" ] || exit 1
	exit 0
}

if [ ! -x "$govulncheck" ]; then
	GOBIN=$work go install golang.org/x/vuln/cmd/govulncheck@$GOVULNCHECK || skip "govulncheck $GOVULNCHECK cannot be had"
	mkdir -p bin && mv "$work/govulncheck" "$govulncheck"
fi

# ask [-db URL]: the report in $work/said. Its status is 3 where there are findings.
ask() {
	status=0
	"$govulncheck" "$@" ./... >"$work/said" 2>&1 || status=$?
	[ $status = 0 ] || [ $status = 3 ]
}

from="the database of the Go project"
if ! ask; then
	# As a file: the sources are a folder of reports, of which its own program makes an index.
	version=$(go list -m -f '{{.Version}}' golang.org/x/vulndb@latest 2>"$work/why") || skip "the database is not reached: $(tail -n 1 "$work/said" "$work/why")"
	from="golang.org/x/vulndb $version"
	(cd "$work" && go mod download -json "golang.org/x/vulndb@$version" >module.json && GOBIN=$work go install "golang.org/x/vulndb/cmd/indexdb@$version") ||
		skip "$from cannot be had"
	"$work/indexdb" -vulns "$(sed -n 's/.*"Dir": "\(.*\)".*/\1/p' "$work/module.json")/data/osv" -out "$work/db"
	ask -db "file://$work/db" || { cat "$work/said" >&2 && exit 1; }
fi

echo "govulncheck $GOVULNCHECK, $from, $(go env GOVERSION):"
if grep -q '^  Module: ' "$work/said"; then
	cat "$work/said" >&2
	exit 1
fi
awk '/^Vulnerability/ { id = $3 } /^    Fixed in:/ { print "  " id ": mended in " $3 "; build with that Go" }' "$work/said"
sed -n '/^Your code is affected/,/^vulnerabilities/p; /^No vulnerabilities/p' "$work/said"
