#!/bin/sh
# What must hold before a release, besides make test: the list of licences is up to date, the command builds for every machine that
# a release is for, and goreleaser understands .goreleaser.yaml.
set -eu
cd "$(dirname "$0")/.."
export GOWORK=off # as users and releases have it

GORELEASER=v2.15.1
goreleaser=$PWD/bin/goreleaser-$GORELEASER

echo "release-check: licences"
scripts/licenses.sh -check

for target in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do
	echo "release-check: $target"
	CGO_ENABLED=0 GOOS=${target%/*} GOARCH=${target#*/} nice go build -trimpath -ldflags="-s -w" -o "bin/release/${target%/*}-${target#*/}/amends" ./cmd/amends
done

echo "release-check: goreleaser $GORELEASER"
if [ ! -x "$goreleaser" ]; then
	mkdir -p bin/install
	GOBIN=$PWD/bin/install nice go install github.com/goreleaser/goreleaser/v2@$GORELEASER
	mv bin/install/goreleaser "$goreleaser" && rmdir bin/install
fi
"$goreleaser" check --quiet
echo "release-check: a release can be made"
