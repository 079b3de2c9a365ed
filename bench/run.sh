#!/bin/sh
# Runs benchmarks of this folder, each round in a process of its own, and has benchstat say what they came to.
#
#   run.sh ROUNDS BENCHTIME PATTERN [FLAGS of a test binary, -test.cpuprofile FILE for one]
#
# With REV=main~1 the same runs at another commit, in turn, and benchstat compares the two.
set -eu
cd "$(dirname "$0")"
rounds=$1 time=$2 pattern=$3
shift 3
dir=$(mktemp -d)
trap 'git worktree remove --force "$dir/tree" 2>/dev/null || true; rm -rf "$dir"' EXIT INT TERM
go test -c -o "$dir/after.test" .
programs=after
if [ -n "${REV:-}" ]; then
	git worktree add --quiet --detach "$dir/tree" "$REV"
	(cd "$dir/tree/bench" && go test -c -o "$dir/before.test" .)
	programs="before after"
fi
for round in $(seq "$rounds"); do
	for program in $programs; do
		"$dir/$program.test" -test.run '^$' -test.bench "$pattern" -test.benchtime "$time" -test.timeout 0 "$@" | tee -a "$dir/$program" >&2
	done
	programs=$(echo "$programs" | awk '{ for (i = NF; i > 0; i--) printf "%s ", $i }')
done
set -- "after=$dir/after"
[ -z "${REV:-}" ] || set -- "before=$dir/before" "$@"
go tool benchstat "$@"
