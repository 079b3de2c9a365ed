package intake

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

var (
	noon  = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	order = Object{Source: "shop", Type: "order", ID: "10492"}
)

// clocked is the version of a source that tells seconds: n seconds before noon's end.
func clocked(n int) Version { return At(noon.Add(time.Duration(n-100)*time.Second), time.Second) }

// says is an event that carries the whole object.
func says(v Version, content string) Event {
	body := json.RawMessage(fmt.Sprintf(`{"is":%q}`, content))
	fp, err := Fingerprint(body)
	if err != nil {
		panic(err)
	}
	return Event{Object: order, Payload: Whole, Version: v, Body: body, Fingerprint: fp, Received: noon}
}

func with(ev Event, change func(*Event)) Event { change(&ev); return ev }
func thin(v Version) Event                     { return Event{Object: order, Payload: Thin, Version: v, Received: noon} }
func deletes(v Version) Event {
	return with(thin(v), func(ev *Event) { ev.Deleted = true })
}

func delta(n int64) Event {
	return Event{Object: order, Payload: Delta, Version: Counter(n), Body: json.RawMessage(fmt.Sprintf(`{"n%d":%d}`, n, n)), Received: noon}
}

func shows(v Version, content string) Fetched {
	ev := says(v, content)
	return Fetched{Version: v, Body: ev.Body, Fingerprint: ev.Fingerprint}
}

var gone = Fetched{Gone: true}

// mergeObjects is what a source of deltas in these tests means by one: more fields.
func mergeObjects(body, delta json.RawMessage) (json.RawMessage, error) {
	fields := map[string]any{}
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(delta, &fields); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// desk is one entry under test and the clock.
type desk struct {
	t   *testing.T
	e   Entry
	p   Policy
	now time.Time
}

func newDesk(t *testing.T, p Policy) *desk {
	t.Helper()
	return &desk{t: t, e: Entry{Object: order, First: noon}, p: p.WithDefaults(), now: noon}
}

// hears judges an event and expects the disposition.
func (d *desk) hears(ev Event, want Disposition) *desk {
	d.t.Helper()
	before := d.e.Version
	e, got, why := Judge(d.e, &Delivery{Event: ev}, d.now, &d.p)
	if got != want || why == "" {
		d.t.Fatalf("disposition %s (%s) on version %q, stored %q; want %s", got, why, ev.Version.Revision(), d.e.Version.Revision(), want)
	}
	if e.Version.Compare(before) < 0 {
		d.t.Fatalf("the version went down from %s to %s", before.Revision(), e.Version.Revision())
	}
	d.e = e
	return d
}

// asks leases the entry, lets the source answer with f and expects what comes of it.
func (d *desk) asks(f Fetched, want string) *desk {
	d.t.Helper()
	return d.asksWhile(func() {}, f, want)
}

// asksWhile is asks; meanwhile happens between question and answer.
func (d *desk) asksWhile(meanwhile func(), f Fetched, want string) *desk {
	d.t.Helper()
	Lease(&d.e, "me", d.now, time.Minute, &d.p)
	if !d.p.MustFetch(&d.e, d.now) {
		d.t.Fatalf("nothing is to be fetched: dirty %d, clean %d, reread %s, missing %s", d.e.FetchRequested, d.e.FetchCompleted, d.e.Reread, d.e.Missing)
	}
	r := Round{FetchSeq: d.e.FetchRequested}
	meanwhile()
	e, what, err := Receive(d.e, &f, r.FetchSeq, d.now, &d.p)
	if err != nil {
		what = err.Error()
	}
	if !strings.Contains(what, want) {
		d.t.Fatalf("the answer was worth %q, want %q", what, want)
	}
	if e.Version.Compare(d.e.Version) < 0 {
		d.t.Fatalf("the version went down from %s to %s", d.e.Version.Revision(), e.Version.Revision())
	}
	d.e = e
	r.Accepted, r.Fetch = e.Accepted, err
	Finish(&d.e, &r, d.now, &d.p)
	return d
}

// goes lets the source say twice that there is no such object.
func (d *desk) goes() *desk {
	d.t.Helper()
	return d.asks(gone, "a second look").later(d.p.Settle).asks(gone, "gone")
}

// later lets time pass.
func (d *desk) later(by time.Duration) *desk { d.now = d.now.Add(by); return d }

// holds expects the accepted state.
func (d *desk) holds(v Version, content string, accepted int64) *desk {
	d.t.Helper()
	want := fmt.Sprintf(`{"is":%q}`, content)
	if d.e.Version.Compare(v) != 0 || string(d.e.Body) != want || d.e.Accepted != accepted || d.e.Deleted {
		d.t.Fatalf("holds %s at %q, %d accepted, deleted %t; want %s at %q, %d", d.e.Body, d.e.Version.Revision(), d.e.Accepted, d.e.Deleted, want, v.Revision(), accepted)
	}
	return d
}

// buried expects a tombstone.
func (d *desk) buried(v Version, accepted int64) *desk {
	d.t.Helper()
	if !d.e.Deleted || d.e.Version.Compare(v) != 0 || d.e.Accepted != accepted {
		d.t.Fatalf("deleted %t at %q, %d accepted; want a tombstone at %q, %d", d.e.Deleted, d.e.Version.Revision(), d.e.Accepted, v.Revision(), accepted)
	}
	return d
}

// owes expects whether the source is to be asked.
func (d *desk) owes(fetch bool) *desk {
	d.t.Helper()
	if d.e.FetchRequested > d.e.FetchCompleted != fetch {
		d.t.Fatalf("dirty %d, clean %d; a fetch should be owed: %t", d.e.FetchRequested, d.e.FetchCompleted, fetch)
	}
	return d
}

// rests expects that no look is due unless something new is heard.
func (d *desk) rests() *desk {
	d.t.Helper()
	d.e.Delivered = d.e.Accepted
	if due := d.p.Due(&d.e, d.now); !due.IsZero() {
		d.t.Fatalf("due at %s", due)
	}
	return d
}
