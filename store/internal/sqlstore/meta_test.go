package sqlstore

import "testing"

// The bucket of a work is a format. The values were computed by another program (Python's
// hashlib).
func TestBucketsAreAFormat(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		work string
		want [4]int // of 1, 2, 8 and 64
	}{
		{"", [4]int{0, 0, 4, 20}},
		{"shop:order:10492", [4]int{0, 1, 3, 51}},
		{"日本", [4]int{0, 1, 3, 11}},
		{"a", [4]int{0, 0, 2, 10}},
	} {
		for i, of := range []int{1, 2, 8, 64} {
			if got := Bucket(c.work, of); got != c.want[i] {
				t.Errorf("bucket of %q among %d: %d, want %d", c.work, of, got, c.want[i])
			}
		}
	}
}
