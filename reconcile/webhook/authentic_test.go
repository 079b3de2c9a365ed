package webhook

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

// What is verified are the bytes as they came. The same JSON with a blank more is another body.
func TestRawBytes(t *testing.T) {
	t.Parallel()
	d := open(t, nil, shop(t))
	spaced := "  " + strings.ReplaceAll(paid, ",", " ,\t") + "\n"
	if got := d.post(t, "shop", signed(t, "msg_1", spaced), spaced); got != 200 {
		t.Errorf("the body as it was signed: answer %d", got)
	}
	if got := d.post(t, "shop", signed(t, "msg_1", spaced), paid); got != 401 {
		t.Errorf("the same JSON in other bytes: answer %d", got)
	}
	if n := len(d.inbox.stored()); n != 1 {
		t.Errorf("%d events are stored; want 1", n)
	}
}

// Whatever stands in the header, the answer is 401, nothing is stored, and each reason has its
// counter.
func TestUnreadableSignatures(t *testing.T) {
	t.Parallel()
	genuine := signed(t, "msg_1", paid)
	good := genuine.Get("Webhook-Signature")
	with := func(change func(h http.Header)) http.Header {
		h := genuine.Clone()
		change(h)
		return h
	}
	set := func(name, value string) http.Header { return with(func(h http.Header) { h.Set(name, value) }) }
	for name, tc := range map[string]struct {
		header http.Header
		why    Refusal
	}{
		"none":                {with(func(h http.Header) { h.Del("Webhook-Signature") }), NoSignature},
		"empty":               {set("Webhook-Signature", ""), NoSignature},
		"no scheme":           {set("Webhook-Signature", strings.TrimPrefix(good, "v1,")), BadSignature},
		"no base64":           {set("Webhook-Signature", "v1,***"), BadSignature},
		"other scheme":        {set("Webhook-Signature", strings.Replace(good, "v1,", "v9,", 1)), WrongSignature},
		"downgraded":          {set("Webhook-Signature", strings.Replace(good, "v1,", "v1a,", 1)), WrongSignature},
		"truncated":           {set("Webhook-Signature", "v1,AAAA"), WrongSignature},
		"17, the last good":   {set("Webhook-Signature", strings.Repeat("v1,AAAA ", 16)+good), BadSignature},
		"200, the first good": {set("Webhook-Signature", good+strings.Repeat(" v1,AAAA", 199)), BadSignature},
		"two headers":         {with(func(h http.Header) { h.Add("Webhook-Signature", good) }), BadSignature},
		"no id":               {with(func(h http.Header) { h.Del("Webhook-Id") }), BadSignature},
		"no time":             {with(func(h http.Header) { h.Del("Webhook-Timestamp") }), BadSignature},
		"time with sign":      {set("Webhook-Timestamp", "+1763640000"), BadSignature},
		"time with fraction":  {set("Webhook-Timestamp", "1763640000.0"), BadSignature},
		"time beyond reason":  {set("Webhook-Timestamp", "99999999999999999999"), BadSignature},
		"another id":          {set("Webhook-Id", "msg_2"), WrongSignature},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t, nil, shop(t))
			if got := d.post(t, "shop", tc.header, paid); got != 401 {
				t.Errorf("answer %d; want 401", got)
			}
			if got := d.reasons(); !slices.Equal(got, []Refusal{tc.why}) {
				t.Errorf("counted as %v; want %s", got, tc.why)
			}
			if n := len(d.inbox.stored()); n != 0 {
				t.Errorf("%d events are stored", n)
			}
		})
	}
	d := open(t, nil, shop(t))
	if got := d.post(t, "shop", set("Webhook-Signature", strings.Repeat("v1,AAAA ", 15)+good), paid); got != 200 {
		t.Errorf("the sixteenth signature is genuine: answer %d", got)
	}
}

// Of the schemes in hexadecimal: an odd number of digits, and what is no digit.
func TestUnreadableHex(t *testing.T) {
	t.Parallel()
	stripe, github := named{"stripe", Sender{Provider: Stripe()}}, named{"github", Sender{Provider: GitHub(), Types: []string{"issue"}}}
	for _, tc := range []struct {
		source named
		header string
		value  string
		why    Refusal
	}{
		{github, "X-Hub-Signature-256", "sha256=abc", BadSignature},
		{github, "X-Hub-Signature-256", "sha256=zz", BadSignature},
		{github, "X-Hub-Signature-256", "sha256=", BadSignature},
		{github, "X-Hub-Signature-256", "sha1=" + strings.Repeat("a", 64), BadSignature},
		{stripe, "Stripe-Signature", "t=1763640000,v1=abc", BadSignature},
		{stripe, "Stripe-Signature", "v1=" + strings.Repeat("a", 64), BadSignature},
		{stripe, "Stripe-Signature", "t=1763640000", NoSignature},
		{stripe, "Stripe-Signature", "t=1763640000,v0=" + strings.Repeat("a", 64), NoSignature},
		{stripe, "Stripe-Signature", "t=1763640000,t=1763640001,v1=" + strings.Repeat("a", 64), BadSignature},
		{stripe, "Stripe-Signature", "t=1763640000" + strings.Repeat(",v1="+strings.Repeat("a", 64), 200), BadSignature},
		{stripe, "Stripe-Signature", ",,,=,", BadSignature},
	} {
		tc.source.Secrets = []Secret{{"only", "a secret for the tests only"}}
		d := open(t, nil, tc.source)
		got := d.post(t, tc.source.Name, http.Header{tc.header: {tc.value}}, "{}")
		if got != 401 || !slices.Equal(d.reasons(), []Refusal{tc.why}) {
			t.Errorf("%.40s: answer %d for %v; want 401 for %s", tc.value, got, d.reasons(), tc.why)
		}
	}
}

// While one secret replaces the other both are good, also in one header; the record says which
// it was, and when the old one was used last.
func TestRotation(t *testing.T) {
	t.Parallel()
	d := open(t, nil, shop(t))
	stranger := signedAt(t, "msg_3", paid, "whsec_c3RyYW5nZXIgaW4gdGhlIG5pZ2h0", noon).Get("Webhook-Signature")
	both := signedAt(t, "msg_3", paid, oldSecret, noon)
	both.Set("Webhook-Signature", stranger+" "+both.Get("Webhook-Signature"))
	for _, h := range []http.Header{signed(t, "msg_1", paid), signedAt(t, "msg_2", paid, oldSecret, noon), both} {
		if got := d.post(t, "shop", h, paid); got != 200 {
			t.Errorf("answer %d", got)
		}
	}
	var by []string
	for _, e := range d.inbox.stored() {
		by = append(by, e.Secret)
	}
	if !slices.Equal(by, []string{"new", "old", "old"}) {
		t.Errorf("signed by %v", by)
	}
	want := []SecretUse{{"shop", "new", 1, noon}, {"shop", "old", 2, noon}}
	if got := d.Secrets(); !slices.Equal(got, want) {
		t.Errorf("use of secrets: %v; want %v", got, want)
	}
}

// A signed time may be as far from our clock as the tolerance says, on either side, and no
// second more.
func TestTolerance(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		tolerance, away time.Duration
		why             Refusal
	}{
		{0, -5 * time.Minute, ""},
		{0, -5*time.Minute - time.Second, TooOld},
		{0, 5 * time.Minute, ""},
		{0, 5*time.Minute + time.Second, TooNew},
		{time.Minute, -time.Minute, ""},
		{time.Minute, -61 * time.Second, TooOld},
		{time.Hour, 59 * time.Minute, ""},
		{NoTolerance, -1000 * time.Hour, ""},
		{NoTolerance, 1000 * time.Hour, ""},
	} {
		s := shop(t)
		s.Tolerance = tc.tolerance
		d := open(t, nil, s)
		status := d.post(t, "shop", signedAt(t, "msg_1", paid, newSecret, noon.Add(tc.away)), paid)
		if tc.why == "" && status != 200 {
			t.Errorf("tolerance %s, %s away: answer %d", tc.tolerance, tc.away, status)
		}
		if tc.why != "" && (status != 401 || !slices.Equal(d.reasons(), []Refusal{tc.why})) {
			t.Errorf("tolerance %s, %s away: answer %d for %v; want %s", tc.tolerance, tc.away, status, d.reasons(), tc.why)
		}
	}
}

// When our own clock is wrong everything genuine fails, and one alarm says by how much. Forged
// deliveries with an old time raise none, and one success in between ends the row.
func TestClockAlarm(t *testing.T) {
	t.Parallel()
	type alarm struct {
		skew time.Duration
		n    int
	}
	var alarms []alarm
	d := open(t, &Options{Listener: &Listener{ClockAlarm: func(_ string, skew time.Duration, n int) { alarms = append(alarms, alarm{skew, n}) }}}, shop(t))
	fail := func(n int, ahead time.Duration) {
		for i := range n {
			h := signedAt(t, "msg_1", paid, newSecret, noon.Add(ahead+time.Duration(i)*time.Second))
			if got := d.post(t, "shop", h, paid); got != 401 {
				t.Errorf("answer %d", got)
			}
		}
	}
	for range 20 {
		h := signedAt(t, "msg_1", paid, newSecret, noon.Add(-time.Hour))
		d.post(t, "shop", h, strings.ToUpper(paid))
	}
	fail(4, time.Hour)
	if got := d.post(t, "shop", signed(t, "msg_2", paid), paid); got != 200 {
		t.Fatalf("answer %d", got)
	}
	fail(4, time.Hour)
	if len(alarms) != 0 {
		t.Errorf("alarms without cause: %v", alarms)
	}
	fail(10, time.Hour)
	if len(alarms) != 1 || alarms[0].n != 5 || alarms[0].skew < time.Hour || alarms[0].skew > time.Hour+10*time.Second {
		t.Errorf("alarms %v; want one, of an hour", alarms)
	}
	if n := strings.Count(d.log.String(), "clock is probably wrong"); n != 1 {
		t.Errorf("%d lines about the clock; want 1", n)
	}
}

// A captured delivery that is sent again within the tolerance is one event still. Where no
// time is signed, it passes however old it is, and then has the digest, version and fingerprint by
// which inbox and gate know it.
func TestReplay(t *testing.T) {
	t.Parallel()
	d := open(t, nil, shop(t), woo())
	order := fixture(t, "woocommerce.json")
	for range 3 {
		if got := d.post(t, "shop", signed(t, "msg_1", paid), paid); got != 200 {
			t.Errorf("answer %d", got)
		}
	}
	first := d.inbox.stored()
	if len(first) != 1 {
		t.Fatalf("%d events; want 1", len(first))
	}
	d.post(t, "woo", wooSigned(order), order)
	before := d.inbox.stored()[1]
	d.inbox.mu.Lock()
	d.inbox.copies = nil // the retention of the inbox is over
	d.inbox.mu.Unlock()
	d.post(t, "woo", wooSigned(order), order)
	after := d.inbox.stored()[2]
	if before.Dedupe != after.Dedupe || before.Version.Compare(after.Version) != 0 || before.Fingerprint != after.Fingerprint || after.Fingerprint.IsZero() {
		t.Errorf("a late replay looks new:\n%+v\n%+v", before, after)
	}
}

// What happened before the source's Begin is kept and ignored; what happened then or later, or does not say when, is judged.
func TestBegin(t *testing.T) {
	t.Parallel()
	s := shop(t)
	s.begin = noon.Add(-time.Hour)
	d := open(t, nil, s)
	body := func(at time.Time) string {
		return `{"type":"order.updated","timestamp":"` + at.Format(time.RFC3339) + `","data":{"id":"7","version":3}}`
	}
	for i, c := range []struct {
		body string
		want intake.Disposition
	}{
		{body(s.begin.Add(-2 * time.Minute)), intake.Ignored}, {body(s.begin), ""}, {body(noon), ""}, {`{"type":"order.updated","data":{"id":"7","version":4}}`, ""},
	} {
		if got := d.post(t, "shop", signed(t, "msg_"+strconv.Itoa(i), c.body), c.body); got != 200 {
			t.Errorf("answer %d to %s", got, c.body)
		}
		all := d.inbox.stored()
		if got := all[len(all)-1].Disposition; got != c.want {
			t.Errorf("%s is %q, want %q (%s)", c.body, got, c.want, all[len(all)-1].Why)
		}
	}
}

// A source that does not exist and one that is hidden answer alike. One that ignores stores
// and says 200, one that refuses keeps the sender trying; neither says anything to who cannot sign.
func TestStates(t *testing.T) {
	t.Parallel()
	in := func(name, secret string, state State) named {
		return named{name, Sender{Provider: orders(t), Secrets: []Secret{{"only", secret}}, State: state}}
	}
	d := open(t, nil, in("hidden", "whsec_c29tZSBvdGhlciBzZWNyZXQ=", Hidden), in("ignoring", newSecret, Ignoring), in("refusing", oldSecret, Refusing))
	genuine := signed(t, "msg_1", paid)
	hidden := d.send(t, http.MethodPost, "/webhooks/hidden", genuine, strings.NewReader(paid))
	for _, path := range []string{"/webhooks/nobody", "/webhooks/", "/webhooks/hidden/", "/webhooks/ignoring/x", "/ignoring", "/"} {
		unknown := d.send(t, http.MethodPost, path, genuine, strings.NewReader(paid))
		unknown.header.Del("Date")
		hidden.header.Del("Date")
		if unknown.status != 404 || hidden.status != 404 || len(unknown.header) != len(hidden.header) {
			t.Errorf("%s answers %v, a hidden source %v", path, unknown, hidden)
		}
	}
	for source, want := range map[string]int{"ignoring": 200, "refusing": 503} {
		if source == "refusing" {
			genuine = signedAt(t, "msg_1", paid, oldSecret, noon)
		} else {
			genuine = signed(t, "msg_1", paid)
		}
		if got := d.post(t, source, genuine, paid); got != want {
			t.Errorf("%s answers %d; want %d", source, got, want)
		}
		if got := d.post(t, source, genuine, paid+" "); got != 401 {
			t.Errorf("%s answers a forged delivery with %d", source, got)
		}
	}
	events := d.inbox.stored()
	if len(events) != 1 || events[0].Object.Source != "ignoring" || events[0].Disposition != intake.Ignored {
		t.Errorf("stored %+v; want one ignored event", events)
	}
}

// A source that could not verify is refused when it is set up, with every fault of every
// source in one error, and no secret in it.
func TestConfigFaults(t *testing.T) {
	t.Parallel()
	_, err := newReceiver(nil, []named{
		{"Shop One", Sender{Provider: Stripe(), Secrets: []Secret{{"a", "tooshort"}, {"a", "long-enough-to-be-one"}}}},
		{"none", Sender{Provider: GitHub()}},
		{"file", Sender{Provider: GitHub(), Secrets: []Secret{{"f", "secret-of-a-file-here\n"}}}},
		{"naked", Sender{Secrets: []Secret{{"a", "some-secret-text-here"}}}},
		{"half", Sender{Provider: Provider{name: "half", key: plainKey}, Secrets: []Secret{{"a", "some-secret-text-here"}}}},
		{"twice", Sender{Provider: orders(t), Secrets: []Secret{{"a", "whsec_!!not-base64!!"}}}},
		{"twice", Sender{Provider: GitHub(), Secrets: []Secret{{"a", "some-secret-text-here"}}, Tolerance: time.Minute, State: "open", Epoch: -1, MaxBody: -1, PerSecond: -1}},
		{"mapped", Sender{Provider: Standard(Mapping{EventID: "id"}), Secrets: []Secret{{"a", "whsec_dGhpcyBpcyBzb21lIHNlY3JldA=="}}}},
		{"keys", Sender{Provider: orders(t), Secrets: []Secret{{"", "whpk_c2hvcnQ="}}, Tolerance: -3}},
	}, &Options{Prefix: "hooks", Budget: time.Minute, RetryAfter: time.Millisecond, MaxHeader: -1})
	if err == nil {
		t.Fatal("it was accepted")
	}
	for _, want := range []string{
		"no inbox", "webhook-id", `"Shop One": its name`, `"a" is none`, "8 bytes; at least 16", `"none": it has no secret`,
		`"naked": its Provider is not complete`, `"half": its Provider is not complete`, "not base64",
		"Tolerance is -3ns; to switch", "the public key has 5 bytes", `"f"): it has blanks`, "signs no time", `State is "open"`, "Epoch is -1", "MaxBody is -1", "PerSecond",
		`Prefix is "hooks"`, "Budget is 1m0s", "RetryAfter is 1ms", "MaxHeader is -1",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q", want)
		}
	}
	for _, leaked := range []string{"tooshort", "long-enough", "some-secret", "secret-of", "!!not", "c2hvcnQ"} {
		if strings.Contains(err.Error(), leaked) {
			t.Errorf("the error contains the secret %q", leaked)
		}
	}
	if _, err := newReceiver(&fakeInbox{}, nil, nil); err == nil || !strings.Contains(err.Error(), "0 sources") {
		t.Errorf("without sources: %v", err)
	}
	if _, err := newReceiver(&fakeInbox{}, make([]named, maxSources+1), nil); err == nil || !strings.Contains(err.Error(), "1025 sources") {
		t.Error("too many sources were accepted")
	}
	one, two := woo(), gitSource()
	two.Secrets = one.Secrets
	if _, err := newReceiver(&fakeInbox{}, []named{one, two}, nil); err == nil || !strings.Contains(err.Error(), `source "woo" has the same`) || strings.Contains(err.Error(), wooSecret) {
		t.Errorf("one secret of two sources: %v", err)
	}
	double := woo()
	if _, err := newReceiver(&fakeInbox{}, []named{double, double}, nil); err == nil || !strings.Contains(err.Error(), "another source of this name") {
		t.Errorf("the same name twice: %v", err)
	}
}

// Also at the request, without keys nothing is genuine.
func TestNoKeysNoEntry(t *testing.T) {
	t.Parallel()
	s := &source{named: shop(t)}
	k, why := s.verify(signed(t, "msg_1", paid), []byte(paid), noon)
	if k != nil || why == nil || why.reason != WrongSignature {
		t.Errorf("key %v, refusal %v", k, why)
	}
	s.Provider.claim = func(http.Header, []byte) (claim, error) { return claim{}, errors.New("odd") }
	if _, why := s.verify(nil, nil, noon); why == nil || why.reason != BadSignature {
		t.Errorf("refusal %v", why)
	}
	s.Provider.claim = func(http.Header, []byte) (claim, error) { return claim{At: noon}, nil }
	if _, why := s.verify(nil, nil, noon); why == nil || why.reason != NoSignature {
		t.Errorf("a claim without signatures: refusal %v", why)
	}
	// A provider that says it signs the time, and does not, replays for ever.
	s.keys = []*key{{name: "any", proves: func(claim) bool { return true }}}
	s.Provider.claim = func(http.Header, []byte) (claim, error) { return claim{Signatures: make([]signature, 1)}, nil }
	if _, why := s.verify(nil, nil, noon); why == nil || why.reason != BadSignature {
		t.Errorf("a claim without its time: refusal %v", why)
	}
}

// Only POST is possible; the content type is the sender's affair as long as the signature is
// good.
func TestMethods(t *testing.T) {
	t.Parallel()
	d := open(t, nil, shop(t))
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		a := d.send(t, method, "/webhooks/shop", http.Header{}, nil)
		if a.status != 405 || a.header.Get("Allow") != http.MethodPost {
			t.Errorf("%s: answer %d, Allow %q", method, a.status, a.header.Get("Allow"))
		}
	}
	for i, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-8"} {
		h := signed(t, "msg_"+string(rune('a'+i)), paid)
		h.Set("Content-Type", kind)
		if got := d.post(t, "shop", h, paid); got != 200 {
			t.Errorf("content type %q: answer %d", kind, got)
		}
	}
	if n := len(d.inbox.stored()); n != 4 {
		t.Errorf("%d events; want 4", n)
	}
}
