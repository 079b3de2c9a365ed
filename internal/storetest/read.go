package storetest

import (
	"fmt"

	"github.com/amends-dev/amends/internal/intake"
)

var readCases = []testCase{
	{name: "counts of two who judge", run: readCountsOfTwo},
}

func names(ds []intake.Delivery) string {
	var all []string
	for _, d := range ds {
		all = append(all, d.Object.ID)
	}
	return fmt.Sprint(all)
}

// counts compares what is counted with what should be.
func (b *bench) counts(want string) {
	b.Helper()
	counts, err := b.Counts(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var got []string
	for _, c := range counts {
		got = append(got, fmt.Sprintf("%s %q %d", c.Source, c.Disposition, c.Count))
		if c.Last.IsZero() {
			b.Errorf("%+v says no time", c)
		}
	}
	if fmt.Sprint(got) != want {
		b.Errorf("counted are %v, want %s", got, want)
	}
}

// What one process judged another counts, and takes back.
func readCountsOfTwo(b *bench) {
	stores := []Store{b.Store, b.again(), b.again()}
	for i := range 6 {
		b.Store = stores[i%3]
		b.accept(event(fmt.Sprint(i)))
		b.judgeAs(intake.Applied)
	}
	b.Store = stores[1]
	b.counts(`[shop "applied" 6]`)
	if _, err := b.Replay(b.Context(), intake.DeliveryFilter{}, "once more"); err != nil {
		b.Fatal(err)
	}
	b.Store = stores[2]
	b.counts(`[shop "" 6]`)
}
