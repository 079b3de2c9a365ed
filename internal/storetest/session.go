package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
)

var sessionCases = []testCase{
	{name: "open", run: sessionOpen},
	{name: "renew", run: sessionRenew},
	{name: "renew to less", run: sessionShorten},
	{name: "a dead session never revives", run: sessionDead},
	{name: "an expired session never revives", run: sessionExpired},
	{name: "bury", run: sessionBury},
	{name: "taken over at its end", run: sessionEnd, breaks: broken{"end-awaited": func(s Store) Store { return early{s} }}},
	{name: "the live ones", run: sessionsLive, breaks: broken{"live-told": func(s Store) Store { return lonely{s} }}},
	{name: "a schema that became newer", run: sessionSchema, needs: func(h Harness) bool { return h.Newer != nil },
		breaks: broken{"schema-known": func(s Store) Store { return credulous{s} }}},
}

// "OpenSession begins a lease of ttl for a new process under a fresh random token, and reads who
// the database is".
func sessionOpen(b *bench) {
	seen := map[machine.Token]bool{0: true}
	database := ""
	before := b.clock()
	for range 10 {
		lease, err := b.OpenSession(b.Context(), 15*time.Second, "host 1, pid 2: 日本", nil)
		if err != nil {
			b.Fatal(err)
		}
		if seen[lease.Token] {
			b.Errorf("token %s is zero, or was given twice", lease.Token)
		}
		seen[lease.Token] = true
		if database == "" {
			database = lease.Database
		}
		if lease.TTL != 15*time.Second || lease.Database == "" || lease.Database != database || lease.At.Before(before) {
			b.Errorf("got %+v, want 15 s from now (%v) on database %q", lease, before, database)
		}
	}
}

// "Renew extends the session's lease to ttl from now, by the database's clock".
func sessionRenew(b *bench) {
	first, err := b.OpenSession(b.Context(), time.Minute, "suite", nil)
	if err != nil {
		b.Fatal(err)
	}
	b.until(b.clock, first.At)
	lease, err := b.Renew(b.Context(), first.Token, ledger.Renewal{TTL: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	if lease.Token != first.Token || lease.TTL != time.Hour || !lease.At.After(first.At) || lease.Database != first.Database {
		b.Errorf("renewed %+v, want an hour from later than %+v, on the same database", lease, first)
	}
}

// "Live are the sessions that are not buried yet, this one included. One that was opened before and
// is missing is dead for ever". It does not matter which process buried it. A session whose lease
// ran out is buried by the next claim.
func sessionsLive(b *bench) {
	one, two, three := b.session(), b.session(), b.session()
	lives := func(when string, lease ledger.Lease, want ...machine.Token) {
		b.Helper()
		for _, t := range []machine.Token{lease.Token, one, two, three} {
			if got := slices.Contains(lease.Live, t); got != slices.Contains(want, t) {
				b.Errorf("%s: session %s is live: %t", when, t, got)
			}
		}
	}
	renewed := func(t machine.Token) ledger.Lease {
		b.Helper()
		lease, err := b.Renew(b.Context(), t, ledger.Renewal{TTL: time.Hour})
		if err != nil {
			b.Fatal(err)
		}
		return lease
	}
	lives("all are live", renewed(one), one, two, three)
	b.bury(two)
	lives("one was buried", renewed(one), one, three)
	b.expire(three)
	b.claim(one, 1) // buries it
	lives("one has ended", renewed(one), one)
	lease, err := b.OpenSession(b.Context(), time.Minute, "suite", nil)
	if err != nil {
		b.Fatal(err)
	}
	lives("at the opening", lease, lease.Token, one)
}

// A lease may be renewed to less than it was: it ends ttl from now.
func sessionShorten(b *bench) {
	t := b.session()
	b.expire(t)
	_, err := b.Renew(b.Context(), t, ledger.Renewal{TTL: time.Hour})
	b.wantError("renew after the shorter lease ended", err, ledger.ErrSessionDead)
}

// "A session that is dead or has expired is not revived: the error matches ErrSessionDead".
func sessionDead(b *bench) {
	t := b.session()
	b.bury(t)
	b.isDead(t)
	b.isDead(b.session() + 1) // nor is one that was never opened
}

func sessionExpired(b *bench) {
	t, other := b.session(), b.session()
	b.expire(t) // no process has buried it yet
	b.isDead(t)
	b.claim(other, 1) // buries it
	b.isDead(t)
}

// isDead tries everything that could bring t back.
func (b *bench) isDead(t machine.Token) {
	b.Helper()
	for range 2 {
		_, err := b.Renew(b.Context(), t, ledger.Renewal{TTL: time.Hour})
		b.wantError("renew a dead session", err, ledger.ErrSessionDead)
		_, err = b.Claim(b.Context(), t, ledger.Claim{Limit: 1, Known: known})
		b.wantError("claim for a dead session", err, ledger.ErrSessionDead)
	}
	b.want(t, b.fresh(t, "armed by "+t.String()).entry(arming(started(), 1), hold), ledger.NoLease)
}

// "Bury marks session t dead, so that its works can be claimed at once. Burying a dead session is
// not an error".
func sessionBury(b *bench) {
	t, other := b.session(), b.session()
	c := b.start(t, "w", started(), hold)
	if got := b.claim(other, 1); len(got) != 0 {
		b.Fatalf("claimed %v from a live session", works(got))
	}
	b.bury(t)
	b.bury(t)
	if got := b.claim(other, 1); len(got) != 1 || got[0].ID != c.id || got[0].Session != other {
		b.Errorf("claimed %+v, want the work of the buried session", got)
	}
	b.isDead(t)
	if _, err := b.Renew(b.Context(), other, ledger.Renewal{TTL: time.Hour}); err != nil {
		b.Errorf("burying one session ended another: %v", err)
	}
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
