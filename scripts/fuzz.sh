#!/bin/sh
# Runs every fuzz target for a while, one after the other:
#
#   FUZZTIME=10m scripts/fuzz.sh
#
# An input that fails is kept by go test under testdata/fuzz: commit it with the fix.
set -eu
cd "$(dirname "$0")/.."

time=${FUZZTIME:-1m}
for package in $(go list work); do
	for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		echo "fuzz $package $target for $time"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package"
	done
done
