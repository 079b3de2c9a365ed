package webhook

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
)

const nested = `{"kind":"invoice.sent","when":"2026-11-20T10:30:00Z","account":{"key":"eu"},
	"payload":{"invoice":{"number":17,"rev":"5","changed":"2026-11-20T11:30:00.250+01:00","note":"x"}}}`

// A mapping finds the parts of an event wherever a sender puts them, and reads versions of every
// kind. What cannot be read makes a hint, never an error.
func TestMapping(t *testing.T) {
	t.Parallel()
	base := Mapping{Topic: "kind", Body: "payload.invoice", ID: "payload.invoice.number", Tenant: "account.key", At: "when"}
	with := func(change func(m *Mapping)) Mapping {
		m := base
		change(&m)
		return m
	}
	changed := time.Date(2026, time.November, 20, 10, 30, 0, 250e6, time.UTC)
	for name, tc := range map[string]struct {
		mapping Mapping
		body    string
		object  string
		version inbox.Version
		payload intake.Payload
		deleted bool
	}{
		"no version": {base, nested, "s:eu:invoice:17", inbox.Version{}, intake.Whole, false},
		"counter": {with(func(m *Mapping) { m.Version, m.Clock = "payload.invoice.rev", inbox.CounterClock }),
			nested, "s:eu:invoice:17", inbox.Counter(5), intake.Whole, false},
		"counter by default": {with(func(m *Mapping) { m.Version = "payload.invoice.rev" }),
			nested, "s:eu:invoice:17", inbox.Counter(5), intake.Whole, false},
		"no counter, by default": {with(func(m *Mapping) { m.Version = "payload.invoice.changed" }),
			nested, "s:eu:invoice:17", inbox.Version{}, intake.Whole, false},
		"part": {with(func(m *Mapping) { m.Partial = true }), nested, "s:eu:invoice:17", inbox.Version{}, intake.Thin, false},
		"counter that is none": {with(func(m *Mapping) { m.Version, m.Clock = "payload.invoice.note", inbox.CounterClock }),
			nested, "s:eu:invoice:17", inbox.Version{}, intake.Whole, false},
		"time": {with(func(m *Mapping) { m.Version, m.Clock = "payload.invoice.changed", inbox.ObjectClock }),
			nested, "s:eu:invoice:17", inbox.At(changed, time.Millisecond), intake.Whole, false},
		"coarse time": {with(func(m *Mapping) {
			m.Version, m.Clock, m.Step = "payload.invoice.changed", inbox.ObjectClock, time.Second
		}),
			nested, "s:eu:invoice:17", inbox.At(changed, time.Second), intake.Whole, false},
		"event time": {with(func(m *Mapping) { m.Version, m.Clock = "when", inbox.EventClock }),
			nested, "s:eu:invoice:17", second(inbox.EventClock, "2026-11-20T10:30:00Z"), intake.Whole, false},
		"time that is none": {with(func(m *Mapping) { m.Version, m.Clock = "payload.invoice.note", inbox.ObjectClock }),
			nested, "s:eu:invoice:17", inbox.Version{}, intake.Whole, false},
		"own type": {with(func(m *Mapping) { m.Type = "bill" }), nested, "s:eu:bill:17", inbox.Version{}, intake.Whole, false},
		"deleted":  {with(func(m *Mapping) { m.Deleted = []string{"invoice.sent"} }), nested, "s:eu:invoice:17", inbox.Version{}, intake.Whole, true},
		"delta":    {with(func(m *Mapping) { m.Delta = true }), nested, "s:eu:invoice:17", inbox.Version{}, intake.Delta, false},
		"thin":     {Mapping{ID: "id", Body: "data"}, `{"type":"order.paid","id":"7"}`, "s:order:7", inbox.Version{}, intake.Thin, false},
	} {
		p, err := made(Standard(tc.mapping))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		e := parsed(t, p, http.Header{"Webhook-Id": {"m"}}, tc.body)[0]
		if e.Object.String() != tc.object || e.Version != tc.version || e.Payload != tc.payload || e.Deleted != tc.deleted || e.Disposition != "" {
			t.Errorf("%s: %+v", name, e)
		}
	}
	// An event that names no tenant where there has to be one belongs to nobody.
	p, err := made(Standard(base))
	if err != nil {
		t.Fatal(err)
	}
	if e := parsed(t, p, nil, strings.Replace(nested, "account", "acc", 1))[0]; e.Disposition != intake.Malformed {
		t.Errorf("without tenant: %+v", e)
	}
}

// The fields that change by themselves make no difference to the fingerprint, and all others do.
func TestVolatile(t *testing.T) {
	t.Parallel()
	p, err := made(Standard(Mapping{}))
	if err != nil {
		t.Fatal(err)
	}
	p.volatile = []string{"seen", "meta.trace"}
	digest := func(data string) intake.Digest {
		return parsed(t, p, nil, `{"type":"a.b","data":`+data+`}`)[0].Fingerprint
	}
	first := digest(`{"id":1,"total":5,"seen":1,"meta":{"trace":"a","k":1}}`)
	if digest(`{"seen":2,"total":5,"id":1,"meta":{"k":1,"trace":"b"}}`) != first {
		t.Error("a volatile field makes another fingerprint")
	}
	if digest(`{"id":1,"total":6,"seen":1,"meta":{"trace":"a","k":1}}`) == first {
		t.Error("another total makes the same fingerprint")
	}
}

// A mapping that cannot be meant is refused with every reason.
func TestMappingFaults(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		m    Mapping
		want []string
	}{
		{Mapping{Clock: inbox.CounterClock}, []string{"no path for the Version"}},
		{Mapping{Clock: "sundial", Partial: true, Delta: true, Step: -1, ID: "data..id", Topic: ".type"}, []string{"sundial", "Partial and Delta", "Step is -1ns", "ID is", "Topic is"}},
	} {
		_, err := made(Standard(tc.m))
		if err == nil {
			t.Errorf("%+v was accepted", tc.m)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v; want %q", tc.m, err, want)
			}
		}
	}
}
