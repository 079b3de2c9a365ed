package storetest

import (
	"errors"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
)

var sessionCases = []testCase{
	{name: "taken over at its end", run: sessionEnd, breaks: broken{"end-awaited": func(s Store) Store { return early{s} }}},
	{name: "a schema that became newer", run: sessionSchema, needs: func(h Harness) bool { return h.Newer != nil },
		breaks: broken{"schema-known": func(s Store) Store { return credulous{s} }}},
}

// "Claim buries sessions that expired, Skew after their end": until then what a session holds is
// its own, although its lease may be over by the clock of the node that looks (K10). The clock is
// read behind the claim, so that it is never earlier than the claim's.
func sessionEnd(b *bench) {
	t, other := b.session(), b.session()
	c := b.start(t, "w", started(), hold)
	if _, err := b.Renew(b.Context(), t, ledger.Renewal{TTL: time.Hour}); err != nil {
		b.Fatal(err)
	}
	if got := b.claim(other, 1); len(got) != 0 {
		b.Fatalf("claimed %v from a session an hour before its end", works(got))
	}
	lease, err := b.Renew(b.Context(), t, ledger.Renewal{TTL: 20 * time.Millisecond})
	if b.harness.LosesAnswers && errors.Is(err, ledger.ErrSessionDead) {
		return // the answer was lost, and when the store asked again the lease was over: when is not known
	}
	if err != nil {
		b.Fatal(err)
	}
	end := lease.At.Add(lease.TTL + b.Limits().Skew)
	for {
		got := b.claim(other, 1)
		at := b.clock()
		if len(got) == 1 && at.Before(end) {
			b.Errorf("claimed %s from another session %s before its end", c.id.Work, end.Sub(at))
		}
		if len(got) == 1 {
			return
		}
		b.until(b.clock, at)
	}
}

// "A schema that is newer than this program answers ErrSchema", also when it has become so while
// the process runs (CORE-33): a renewal notices, and no session is opened.
func sessionSchema(b *bench) {
	t := b.session()
	b.harness.Newer(b.T, b.raw)
	_, err := b.Renew(b.Context(), t, ledger.Renewal{TTL: time.Hour})
	b.wantError("renew on a newer schema", err, ledger.ErrSchema)
	_, err = b.OpenSession(b.Context(), time.Hour, "suite", nil)
	b.wantError("open a session on a newer schema", err, ledger.ErrSchema)
}
