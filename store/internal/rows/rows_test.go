package rows

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/amends-dev/amends/internal/intake"
)

func receive(t *testing.T, es ...intake.Event) []*Incoming {
	t.Helper()
	ins, err := Receive(es)
	if err != nil {
		t.Fatal(err)
	}
	return ins
}

// Within a round every key is there once, copies are counted, the order stays, and nothing that
// says something else is lost.
func TestRounds(t *testing.T) {
	t.Parallel()
	e := func(id, body string) intake.Event {
		return intake.Event{Object: intake.Object{ID: "1"}, Dedupe: intake.DigestOf(id), Body: []byte(body)}
	}
	ins := receive(t, e("a", "1"), e("b", "1"), e("a", "1"), e("a", "2"), e("a", "2"), e("a", "3"), e("c", ""))
	rounds := Rounds(ins)
	var got []string
	for _, r := range rounds {
		var b strings.Builder
		for _, in := range r {
			b.WriteString(in.Body + strings.Repeat("'", int(in.Copies)) + " ")
		}
		got = append(got, b.String())
	}
	if want := "1'' 1' ' |2'' |3' "; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", strings.Join(got, "|"), want)
	}
	if ins[0].Copies != 1 {
		t.Error("the rounds changed what they were given; a batch may be tried again")
	}
}

// Text fits its column whatever it was, and two long names that differ stay two.
func TestText(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "plain", "é\x00", "\xff", strings.Repeat("é", 9000), strings.Repeat("\xf0\x9f\x98\x80", 600), "a" + strings.Repeat("\xf0\x9f\x98\x80", 600)} {
		n := name(s)
		if len(n) > nameLimit || !utf8.ValidString(n) || strings.Contains(n, "\x00") {
			t.Errorf("the name %.20q… became %.20q… of %d bytes", s, n, len(n))
		}
		if v, ok := text(s).(string); ok && (len(v) > textLimit+3 || !utf8.ValidString(v) || strings.Contains(v, "\x00")) {
			t.Errorf("the text %.20q… became %.20q… of %d bytes", s, v, len(v))
		}
		if name(n) != n {
			t.Errorf("the name %.20q… changes each time it is read", n)
		}
	}
	long := strings.Repeat("n", 600)
	if name(long+"1") == name(long+"2") {
		t.Error("two names became one")
	}
}

// What the database holds decides whether an entry has changed, and when it was written does not.
func TestSame(t *testing.T) {
	t.Parallel()
	values := func(change func(*intake.Entry)) []any {
		e := intake.Entry{Fingerprint: intake.DigestOf("1"), Body: []byte(`{}`), Due: time.Unix(1, 0)}
		change(&e)
		v, err := Values(&e)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	was := values(func(*intake.Entry) {})
	for name, c := range map[string]struct {
		change func(*intake.Entry)
		same   bool
	}{
		"nothing":     {func(*intake.Entry) {}, true},
		"written":     {func(e *intake.Entry) { e.Updated = time.Unix(9, 0) }, true},
		"nanoseconds": {func(e *intake.Entry) { e.Due = e.Due.Add(10) }, true},
		"due":         {func(e *intake.Entry) { e.Due = e.Due.Add(time.Second) }, false},
		"never due":   {func(e *intake.Entry) { e.Due = time.Time{} }, false},
		"fingerprint": {func(e *intake.Entry) { e.Fingerprint = intake.DigestOf("2") }, false},
		"none":        {func(e *intake.Entry) { e.Fingerprint = intake.Digest{} }, false},
		"body":        {func(e *intake.Entry) { e.Body = []byte(`[]`) }, false},
		"parked":      {func(e *intake.Entry) { e.Parked = []intake.Event{{}} }, false},
		"attempts":    {func(e *intake.Entry) { e.Attempts = 1 }, false},
	} {
		if got := Same(was, values(c.change)); got != c.same {
			t.Errorf("%s: same is %v", name, got)
		}
	}
	if len(was) != len(EntryColumns) {
		t.Errorf("%d values for %d columns", len(was), len(EntryColumns))
	}
	if in := receive(t, intake.Event{Dedupe: intake.DigestOf("1")}); len(in[0].Values) != len(InboxColumns) ||
		InboxColumns[Disposition].Name != "receiver_disposition" || InboxColumns[Why].Name != "receiver_reason" {
		t.Error("the columns of the inbox and their values do not fit")
	}
}

// Events that wait for their turn stand in a row of the objects: the names in their JSON never
// change, and neither a counter nor nanoseconds lose digits in it.
func TestPendingEventsAreAFormat(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	o := intake.Object{Source: "shop", Type: "order", ID: "1"}
	e := intake.Event{
		Object: o, Topic: "order.updated", ID: "evt_1", Dedupe: intake.Digest{1}, Payload: intake.Delta, Deleted: true,
		Version: intake.Version{Epoch: 2, Clock: intake.ObjectClock, N: 1<<62 + 1, Step: time.Second},
		Body:    json.RawMessage(`{"a": 1}`), Fingerprint: intake.Digest{2}, At: at, Received: at.Add(time.Second),
		Secret: "2026-11", Disposition: intake.Hint, Why: "the receiver said so",
	}
	const want = `[{"topic":"order.updated","eventId":"evt_1","dedupeKey":"01000000000000000000000000000000","payloadKind":"delta","deleted":true,` +
		`"version":{"epoch":"2","kind":"time","number":"4611686018427387905","precision":"1000000000"},"body":"{\"a\": 1}",` +
		`"fingerprint":"02000000000000000000000000000000","occurredAt":"2026-03-01T12:00:00Z","receivedAt":"2026-03-01T12:00:01Z",` +
		`"signedBy":"2026-11","receiverDisposition":"hint","receiverReason":"the receiver said so"}]`
	list, err := park([]intake.Event{e})
	if err != nil || list != want {
		t.Errorf("stored as\n%s (%v)\nwant\n%s", list, err, want)
	}
	if back, err := unpark(want, o); err != nil || len(back) != 1 || !reflect.DeepEqual(back[0], e) {
		t.Errorf("reads back as\n%+v (%v)\nwant\n%+v", back, err, e)
	}
}
