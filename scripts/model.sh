#!/bin/sh
# Checks the models, internal/machine/saga.pml and waits.pml, and internal/intake/fetch.pml, and their mutants; prints what each run found.
#
#   scripts/model.sh                     every scene and mutant
#   scripts/model.sh -changed            only if a model or what runs it differs from scripts/model.passed
#   AMENDS_MODEL=full scripts/model.sh   larger budgets of faults (make nightly)
#
# When the models hold, scripts/model.passed says for which files. Commit it with them.
set -eu
cd "$(dirname "$0")/.."

files="internal/machine/saga.pml internal/machine/waits.pml internal/machine/model_test.go internal/intake/fetch.pml internal/intake/model_test.go
	internal/spin/model.go internal/spin/verify.go"
now() { for file in $files; do echo "$(git hash-object "$file") $file"; done; }

if [ "${1:-}" = -changed ] && [ "$(now)" = "$(cat scripts/model.passed 2>/dev/null)" ]; then
	echo "models: unchanged since they passed (scripts/model.passed)"
	exit
fi
AMENDS_MODEL=${AMENDS_MODEL:-day} go test -count=1 -timeout "${MODEL_TIMEOUT:-2h}" -v -run '^TestModel' ./internal/machine ./internal/intake
if command -v spin >/dev/null && command -v gcc >/dev/null; then # otherwise the tests were skipped
	now >scripts/model.passed
fi
