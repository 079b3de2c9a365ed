package pgtest

// Unavailable is for tests: what package pgtest_test looks at from inside.
var Unavailable = unavailable
