package pgtest

// For tests: what package pgtest_test looks at from inside.
var (
	Newest      = newest
	Unavailable = unavailable
)
