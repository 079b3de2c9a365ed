#!/bin/sh
# Changes the machine and the memory store in one place after the other, and says which changes no test of the package notices.
# Survivors are printed and fail nothing: many change what cannot be seen. Those in bin/mutants-*.json can be compared from night to
# night.
#
#   PACKAGES="./internal/machine"   these instead
set -eu
cd "$(dirname "$0")/.."
export GOWORK=off GOFLAGS=-short

GREMLINS=v0.6.0
gremlins=$PWD/bin/gremlins-$GREMLINS
if [ ! -x "$gremlins" ]; then
	mkdir -p bin && GOFLAGS='' GOBIN=$PWD/bin go install github.com/go-gremlins/gremlins/cmd/gremlins@$GREMLINS
	mv bin/gremlins "$gremlins"
fi
for package in ${PACKAGES:-./internal/machine ./store/memory}; do
	"$gremlins" unleash --output-statuses l --output "bin/mutants-$(basename "$package").json" "$package"
done
