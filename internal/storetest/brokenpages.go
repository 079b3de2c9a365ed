package storetest

// What breaks the rules of a reconciler's lists: filters that are not obeyed, and pages that lose
// their place.

// next is a number beside n, and no number where there is none.
func next(n, by int64) int64 {
	if n == 0 {
		return 0
	}
	return n + by
}
