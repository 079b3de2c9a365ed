package coordinator_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/ledger/ledgertest"
	"github.com/amends-dev/amends/ledger/memory"
	"github.com/amends-dev/amends/saga"
)

// A completed work is run again at the version it has: the invoice is written again, the mail is not sent again, the
// same request does it once, and the source's next version follows as ever.
func TestAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, b := memory.New(nil), &paper{invoices: map[string]string{}}
		p := office(t, l, b, 1, false)
		p.revise("17", "three lines")
		first := p.want("o1", saga.Completed, "")
		again := func(request string, duplicate bool) {
			t.Helper()
			s, err := p.Again(t.Context(), orderSaga, "o1", request, anna)
			if err != nil || s.Duplicate != duplicate || s.Revised == duplicate {
				t.Errorf("request %s: %+v, %v", request, s, err)
			}
		}
		again("plan 1", false)
		again("plan 1", true)
		pass(time.Second)
		s := p.want("o1", saga.Completed, "")
		if s.Revision != "17+1" || s.Steps["invoice"].Key == first.Steps["invoice"].Key || s.Steps["invoice"].ExternalID != "inv-1" {
			t.Errorf("after the run: %+v", s)
		}
		again("plan 1", true)
		if err := p.halt(); err != nil {
			t.Fatal(err)
		}
		again("plan 2", false)
		again("plan 3", false) // nobody has read the one before
		p = office(t, l, b, 1, false)
		pass(time.Second)
		if s := p.revise("17", "three lines"); !s.Stale || s.Revision != "17+3" {
			t.Errorf("the source says again what was repeated: %+v", s)
		}
		p.revise("18", "four lines")
		pass(time.Second)
		p.want("o1", saga.Completed, "")
		b.wants(t, `inv-1 says three lines (revision "17")`, "mail about inv-1", `inv-1 says three lines (revision "17+1")`,
			`inv-1 says three lines (revision "17+3")`, `inv-1 says four lines (revision "18")`)
		ledgertest.MustCheck(t, l)
	})
}

// A work without revisions can be run again, too.
func TestAgainWithoutRevision(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &paper{invoices: map[string]string{}}
		p := office(t, memory.New(nil), b, 1, false)
		p.revise("", "one")
		p.want("o1", saga.Completed, "")
		if _, err := p.Again(t.Context(), orderSaga, "o1", "r", anna); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		p.want("o1", saga.Completed, "")
		b.wants(t, `inv-1 says one (revision "")`, "mail about inv-1", `inv-1 says one (revision "+1")`)
	})
}

// Only what is completed is run again: not what was undone, nor what nobody knows. It is said who wants it, and why.
func TestAgainRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &paper{invoices: map[string]string{}}
		p := office(t, memory.New(nil), b, 1, false)
		p.revise("1", "one")
		p.want("o1", saga.Completed, "")
		if err := p.Withdraw(t.Context(), orderSaga, "o1", "2", anna); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		p.want("o1", saga.Compensated, "")
		for _, c := range []struct {
			work, request string
			by            coordinator.By
			want          error
		}{
			{"o1", "r", anna, coordinator.ErrNotCompleted},
			{"o2", "r", anna, ledger.ErrNotFound},
			{"o1", "", anna, nil},
			{"o1", "r", coordinator.By{}, nil},
		} {
			if _, err := p.Again(t.Context(), orderSaga, c.work, c.request, c.by); err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("%+v: %v", c, err)
			}
		}
	})
}
