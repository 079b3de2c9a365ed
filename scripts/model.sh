#!/bin/sh
# Checks the models, internal/machine/saga.pml and internal/intake/fetch.pml, and their mutants; prints what each run found.
#
#   scripts/model.sh                     as CI does
#   AMENDS_MODEL=full scripts/model.sh   larger budgets of faults (make nightly)
set -eu
cd "$(dirname "$0")/.."
exec go test -count=1 -timeout "${MODEL_TIMEOUT:-2h}" -v -run '^TestModel' ./internal/machine ./internal/intake
