package storetest

import (
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

var retentionCases = []testCase{
	{name: "a bounded batch", run: retentionBounded},
}

const soon = time.Millisecond

// age lets a retention of [soon] pass.
func (b *bench) age() {
	b.Helper()
	b.until(b.calendar, b.calendar().Add(2*soon))
}

// "at most limit rows of each kind".
func retentionBounded(b *bench) {
	b.accept(events(10)...)
	b.judgeAs(intake.Applied)
	b.age()
	for _, want := range []int{4, 4, 2, 0} {
		if n, err := b.Purge(b.Context(), intake.Retention{Rows: soon}, 4); err != nil || n != want {
			b.Errorf("purged %d, %v; want %d", n, err, want)
		}
	}
}
