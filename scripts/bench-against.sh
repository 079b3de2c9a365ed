#!/bin/sh
# Compares the speed of the working tree with that of another commit: every engine at every load by both builds, in turn,
# five rounds. The column "of before" is the median over the rounds of this one's rate by the other's.
#
#   scripts/bench-against.sh REV [ARGS of bench compare]
set -eu
cd "$(dirname "$0")/.."
rev=${1:?which commit to compare with}
shift
dir=$(mktemp -d)
trap 'git worktree remove --force "$dir/before" 2>/dev/null || true; rm -rf "$dir"' EXIT INT TERM
git worktree add --quiet --detach "$dir/before" "$rev"
(cd "$dir/before/bench" && go build -o "$dir/bench-before" .)
(cd bench && go build -o "$dir/bench" .)
"$dir/bench" compare --against "$dir/bench-before" --rounds 5 "$@"
