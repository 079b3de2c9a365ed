// Package spin checks models with the Spin model checker, as tests.
//
// A [Model] is a Promela file, the scenes under which it must hold, and the mutants, each of which
// lacks one rule and must be caught. The file's head explains every mutant, between the lines
// "MUTANTS:" and "BY HAND". Assertions in the file have names: a byte that is set to what must
// hold, and then asserted.
//
// AMENDS_MODEL=day runs them (make model), AMENDS_MODEL=full with the larger budgets (make nightly). Where spin or gcc is not installed the
// tests are skipped, in CI they fail.
package spin
