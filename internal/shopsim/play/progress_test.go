package play

import (
	"bytes"
	"testing"
)

// Where there is no terminal, progress is a line for each fifth of both syncs together, never more,
// and none is drawn over another.
func TestProgressInLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := newProgress(&out, 10)
	for done := range 12 { // a sync may count more than there was at first
		p.naive(done)
		p.naive(done)
	}
	p.amends(2)
	p.amends(9)
	p.amends(10)
	p.end()
	const want = `orders done: 0 with amends, 4 without a ledger
orders done: 0 with amends, 8 without a ledger
orders done: 2 with amends, 10 without a ledger
orders done: 9 with amends, 10 without a ledger
orders done: 10 with amends, 10 without a ledger

`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
