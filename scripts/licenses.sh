#!/bin/sh
# The licences of everything that is linked into the command amends, read from the module cache:
#
#   scripts/licenses.sh            writes LICENSES.md
#   scripts/licenses.sh -check     fails if LICENSES.md is not what it would write
#   scripts/licenses.sh -texts DIR copies the texts into DIR, for the archives of a release
#
# A licence that it does not know is an error: a person reads it first.
set -eu
cd "$(dirname "$0")/.."
export GOWORK=off # as users and releases have it

# modules prints path, version and folder of each module that is linked, on any machine that a release is for.
modules() {
	for target in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do
		CGO_ENABLED=0 GOOS=${target%/*} GOARCH=${target#*/} \
			go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/amends
	done | grep . | LC_ALL=C sort -u
}

# texts prints the files of a folder that are licences or belong to one.
texts() {
	find "$1" -maxdepth 1 -type f | LC_ALL=C sort | grep -E '/(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE|PATENTS)[^/]*$' | grep -v '\.go$' | grep -v LOGO
}

# name says which licence a text is.
name() {
	case $(tr -s ' \t\r\n' ' ' <"$1") in
	*"Apache License"*"Version 2.0"*) echo Apache-2.0 ;;
	*"Permission is hereby granted, free of charge"*) echo MIT ;;
	*"Redistribution and use in source and binary forms"*"Neither the name"*) echo BSD-3-Clause ;;
	*"Redistribution and use in source and binary forms"*) echo BSD-2-Clause ;;
	*"dedicated to the public domain"*) echo "public domain" ;;
	*) echo "$1 is a licence that scripts/licenses.sh does not know: read it, then teach it" >&2 && return 1 ;;
	esac
}

# kinds says which licences a folder has, each once: of LICENSE itself, and of those beside it for parts.
kinds() {
	texts "$1" | grep -vE '/(NOTICE|PATENTS|LICENSE-3RD-PARTY)' >"$work/texts"
	[ -s "$work/texts" ] || { echo "$1 has no licence" >&2 && return 1; }
	while read -r text; do name "$text" || return 1; done <"$work/texts" >"$work/kinds"
	awk '!seen[$0]++ { all = all (all ? ", " : "") $0 } END { print all }' "$work/kinds"
}

table() {
	cat <<-'END'
		# Licenses

		amends is under Apache-2.0 ([LICENSE](LICENSE)). This is what else is linked into the command `amends`, and under which licence. The archives of a
		release have the texts. `scripts/licenses.sh` writes this file, and `make release-check` fails when it is behind.

		| module | version | licence |
		|---|---|---|
	END
	echo "| Go, its runtime and standard library | that of the build | $(kinds "$(go env GOROOT)") |"
	modules >"$work/modules"
	while read -r module version dir; do
		of=$(kinds "$dir") || exit 1
		echo "| \`$module\` | $version | $of |"
	done <"$work/modules"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
case ${1:-} in
-check)
	table >"$work/LICENSES.md"
	diff -u LICENSES.md "$work/LICENSES.md" || { echo "LICENSES.md is behind: run scripts/licenses.sh, and read the difference" >&2 && exit 1; }
	;;
-texts)
	rm -rf "$2" && mkdir -p "$2/go"
	cp "$(go env GOROOT)/LICENSE" "$2/go"
	modules | while read -r module _ dir; do
		mkdir -p "$2/$module"
		texts "$dir" | while read -r text; do cp "$text" "$2/$module" && chmod 644 "$2/$module/${text##*/}"; done
	done
	;;
*)
	table >"$work/LICENSES.md"
	cat "$work/LICENSES.md" >LICENSES.md
	;;
esac
