#!/bin/sh
# Makes the tag of a release, after all that must hold for it. Nothing is pushed.
#
#   scripts/release.sh v0.1.0
set -eu
cd "$(dirname "$0")/.."

version=${1:-}
fail() { echo "release: $1" >&2 && exit 1; }

echo "$version" | grep -qE '^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$' || fail "say which: make release VERSION=v0.1.0"
git rev-parse -q --verify "refs/tags/$version" >/dev/null && fail "there is a tag $version already"
[ -z "$(git status --porcelain)" ] || fail "the work tree is not clean: commit, or put away, what git status shows"
grep -qE "^## $version( |,|\$)" CHANGELOG.md || fail "CHANGELOG.md has no section '## $version'"

scripts/release-check.sh
[ -z "$(git status --porcelain)" ] || fail "the checks have changed files: see git status"
git tag -a "$version" -m "amends $version"
echo "release: $version is tagged. To publish: git push origin $version"
