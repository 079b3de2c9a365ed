package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
)

const (
	token = "a-secret-for-tests-only"
	login = "shop:" + token
)

func basicOf(login string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(login)) }

// tool is a sender as its users set it up, and what it sends then.
type tool struct {
	name    string
	auth    Auth
	mapping Mapping
	secret  string
	header  map[string]string
	body    string
	object  string
	version int64
}

// tools are senders outside of those that have a provider: none needs code.
func tools(tb testing.TB) []tool {
	tb.Helper()
	// What a flow sends is what its builder puts there: here the object itself.
	flow := Mapping{Topic: "event", Body: ".", Type: "order", Version: "version", Clock: inbox.CounterClock}
	order := fixture(tb, "homegrown.json")
	return []tool{
		// Its HTTP Request node, with the credential "Header Auth": a name and a value.
		// https://docs.n8n.io/integrations/builtin/credentials/httprequest
		{"n8n, header auth", Auth{Method: "bearer", Header: "X-API-Key"}, flow, token, map[string]string{"X-API-Key": token}, order, "s:order:10492", 4},
		// The same node, with the credential "Bearer Auth".
		{"n8n, bearer auth", Auth{Method: "bearer"}, flow, token, map[string]string{"Authorization": "Bearer " + token}, order, "s:order:10492", 4},
		// Its HTTP app, authentication type "API key": placed in a header, with a name and a
		// prefix. https://apps.make.com/http
		{"Make, API key", Auth{Method: "bearer", Header: "x-make-apikey", Prefix: "Token "}, flow, token,
			map[string]string{"X-Make-Apikey": "Token " + token}, order, "s:order:10492", 4},
		// The same app, authentication type "Basic auth".
		{"Make, basic auth", Auth{Method: "basic"}, flow, login, map[string]string{"Authorization": basicOf(login)}, order, "s:order:10492", 4},
		// Webhooks by Zapier, POST with payload type JSON, and its field for basic auth: user and
		// password. https://help.zapier.com/hc/en-us/articles/8496326446989-Send-webhooks-in-Zaps
		{"Zapier, basic auth", Auth{Method: "basic"}, flow, login, map[string]string{"Authorization": basicOf(login)}, order, "s:order:10492", 4},
		// The same action, with a header of the Zap's own.
		{"Zapier, header", Auth{Method: "bearer", Header: "X-Hook-Token"}, flow, token, map[string]string{"X-Hook-Token": token}, order, "s:order:10492", 4},
		// sha256= and the HMAC of the body in base64.
		// https://www.typeform.com/developers/webhooks/secure-your-webhooks/
		{"Typeform", Auth{Method: "hmac", Header: "Typeform-Signature", Prefix: "sha256=", Encoding: "base64"},
			Mapping{Topic: "event_type", Body: "form_response", Type: "response", ID: "form_response.token", EventID: "event_id", At: "form_response.submitted_at"}, token,
			map[string]string{"Typeform-Signature": "sha256=Uyp+I21k0CoOeKRUIk/TdqhuxnAbHMoqvpJPPK3LT2Q="}, fixture(tb, "typeform.json"), "s:response:9cb5b9bb7d4ea3d8", 0},
		// A system of one's own, in the way of Stripe:
		// https://docs.stripe.com/webhooks#verify-manually
		{"home-grown", Auth{Method: "hmac", Header: "X-Signature", TimePart: "t", Prefix: "v1="}, flow, token,
			map[string]string{"X-Signature": "t=1795176000,v1=0ca857538a1065aae592583a71923f22587747de1fbbfef22932cc1a946cb5fa"}, order, "s:order:10492", 4},
		// Another, in the way of Slack, whose time has a header of its own:
		// https://api.slack.com/authentication/verifying-requests-from-slack
		{"home-grown, two headers", Auth{Method: "hmac", Header: "X-Signature", TimeHeader: "X-Timestamp", Signed: "{body}|{time}"}, flow, token,
			map[string]string{"X-Signature": "5f3039d0bdd64972602c91993767021ccfcb382f1a526843578298fdd5760ae2", "X-Timestamp": "1795176000"}, order, "s:order:10492", 4},
	}
}

func (tl tool) source(tb testing.TB, secrets ...Secret) named {
	tb.Helper()
	p, err := made(Custom(tl.auth, tl.mapping))
	if err != nil {
		tb.Fatalf("%s: %v", tl.name, err)
	}
	return named{"s", Sender{Provider: p, Secrets: secrets}}
}

func headerOf(values map[string]string) http.Header {
	h := http.Header{}
	for name, value := range values {
		h.Set(name, value)
	}
	return h
}

// What a tool sends is believed and read, with the new secret and with the one that it replaces;
// without its header, with another secret, or changed by a character it is not.
func TestTools(t *testing.T) {
	t.Parallel()
	for _, tl := range tools(t) {
		t.Run(tl.name, func(t *testing.T) {
			t.Parallel()
			other := Secret{"other", strings.Replace(tl.secret, "tests", "nobody", 1)}
			d := open(t, nil, tl.source(t, other, Secret{"ours", tl.secret}))
			if got := d.post(t, "s", headerOf(tl.header), tl.body); got != 200 {
				t.Fatalf("answer %d: %v", got, d.reasons())
			}
			e := d.inbox.stored()[0]
			if e.Object.String() != tl.object || e.Disposition != "" || e.Secret != "ours" || e.Payload != intake.Whole || e.Topic == "" {
				t.Errorf("stored %+v", e)
			}
			if want := (inbox.Version{}); tl.version > 0 && e.Version != inbox.Counter(tl.version) || tl.version == 0 && e.Version != want {
				t.Errorf("version %v", e.Version)
			}
			for _, u := range d.Secrets() {
				if (u.Count == 1) != (u.Secret == "ours") {
					t.Errorf("%s was used %d times", u.Secret, u.Count)
				}
			}

			if got := d.post(t, "s", http.Header{}, tl.body); got != 401 {
				t.Errorf("without a header: answer %d", got)
			}
			for name, value := range tl.header {
				for _, changed := range []string{value[:len(value)-2] + "xx", value[1:], value + "0", " ", strings.Repeat("=", 40)} {
					if got := d.post(t, "s", headerOf(cloneWith(tl.header, name, changed)), tl.body); got != 401 {
						t.Errorf("%s: %q: answer %d", name, changed, got)
					}
				}
				twice := headerOf(tl.header)
				twice.Add(name, value)
				if got := d.post(t, "s", twice, tl.body); got != 401 {
					t.Errorf("%s twice: answer %d", name, got)
				}
			}
			alone := open(t, nil, tl.source(t, other))
			if got := alone.post(t, "s", headerOf(tl.header), tl.body); got != 401 || !slices.Equal(alone.reasons(), []Refusal{WrongSignature}) {
				t.Errorf("with another secret: answer %d, %v", got, alone.reasons())
			}
			if text := d.log.String() + alone.log.String(); strings.Contains(text, tl.secret) || strings.Contains(text, "paid") {
				t.Errorf("logged: %s", text)
			}
		})
	}
}

// A signed time bounds how long a captured delivery is good, wherever it stands; where none is
// signed nothing does.
func TestToolsSignedTime(t *testing.T) {
	t.Parallel()
	for _, tl := range tools(t) {
		s, err := newSource(tl.source(t, Secret{"ours", tl.secret}))
		if err != nil {
			t.Fatal(err)
		}
		timed := strings.HasPrefix(tl.name, "home-grown")
		for after, want := range map[time.Duration]Refusal{5 * time.Minute: "", 5*time.Minute + time.Second: TooOld, -5*time.Minute - time.Second: TooNew} {
			if !timed {
				want = ""
			}
			_, why := s.verify(headerOf(tl.header), []byte(tl.body), noon.Add(after))
			if why == nil && want != "" || why != nil && why.reason != want {
				t.Errorf("%s: %s after it was signed: %+v, want %q", tl.name, after, why, want)
			}
		}
	}
}

// Times are seconds or milliseconds, RFC 3339 or HTTP's date, and nothing else.
func TestStampTime(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Time{
		"1795176000": noon, "1795176000000": noon, "1795176000250": noon.Add(250 * time.Millisecond), "": {}, "-1": {}, "noon": {}, "99999999999999999999": {},
		"2026-11-20T12:00:00Z": noon, "2026-11-20T12:00:00.25Z": noon.Add(250 * time.Millisecond), "2026-11-20T14:00:00+02:00": noon,
		"Fri, 20 Nov 2026 12:00:00 GMT": noon, "1795176000.5": noon,
		"2026-11-20T12:00:00": {}, "2026-11-20": {}, "1795176000.": {}, "1795176000.x": {}, ".5": {}, "1.795176e9": {},
	} {
		got, err := stampTime(text)
		if !got.Equal(want) && err == nil || want.IsZero() != (err != nil) {
			t.Errorf("%q is %s (%v), want %s", text, got, err, want)
		}
	}
}

// Of several signatures beside each other one has to be ours; what cannot be read beside it does no
// harm. The time has to be there, once.
func TestSignatureParts(t *testing.T) {
	t.Parallel()
	home := tools(t)[7]
	s, err := newSource(home.source(t, Secret{"ours", home.secret}))
	if err != nil {
		t.Fatal(err)
	}
	const stamp, sum = "t=1795176000", "v1=0ca857538a1065aae592583a71923f22587747de1fbbfef22932cc1a946cb5fa"
	for header, want := range map[string]Refusal{
		stamp + "," + sum:                     "",
		sum + ", " + stamp:                    "",
		stamp + ";" + sum:                     "",
		stamp + ",v1=00,v0=11,v1=zz,x," + sum: "",
		sum:                                   BadSignature,
		stamp:                                 BadSignature,
		stamp + "," + stamp + "," + sum:       BadSignature,
		"t=," + sum:                           BadSignature,
		"t=soon," + sum:                       BadSignature,
		stamp + ",v1=zz":                      BadSignature,
		stamp + ",v1=":                        BadSignature,
		stamp + ",v1=00":                      WrongSignature,
		"t=1795176001," + sum:                 WrongSignature,
		stamp + strings.Repeat(",v1=00", 15) + "," + sum: "",
		stamp + strings.Repeat(",v1=00", 16) + "," + sum: BadSignature,
		stamp + strings.Repeat(",v1=zz", 16) + "," + sum: BadSignature,
		"": NoSignature,
	} {
		_, why := s.verify(http.Header{"X-Signature": {header}}, []byte(home.body), noon)
		if why == nil && want != "" || why != nil && why.reason != want {
			t.Errorf("%q: %+v, want %q", header, why, want)
		}
	}
}

// A signature is read only as it was set up: with its prefix, in canonical base64, and with the
// header of its time.
func TestSignatureForm(t *testing.T) {
	t.Parallel()
	form, home := tools(t)[6], tools(t)[8]
	const sum = "Uyp+I21k0CoOeKRUIk/TdqhuxnAbHMoqvpJPPK3LT2Q="
	for _, tc := range []struct {
		tool   tool
		header http.Header
		want   Refusal
	}{
		{form, http.Header{"Typeform-Signature": {"sha256=" + sum}}, ""},
		{form, http.Header{"Typeform-Signature": {sum}}, BadSignature},
		{form, http.Header{"Typeform-Signature": {"SHA256=" + sum}}, BadSignature},
		{form, http.Header{"Typeform-Signature": {"sha256=" + strings.Replace(sum, "2Q=", "2R=", 1)}}, BadSignature},
		{form, http.Header{"Typeform-Signature": {"sha256="}}, BadSignature},
		{home, headerOf(home.header), ""},
		{home, http.Header{"X-Signature": {home.header["X-Signature"]}}, BadSignature},
		{home, http.Header{"X-Timestamp": {home.header["X-Timestamp"]}}, NoSignature},
	} {
		s, err := newSource(tc.tool.source(t, Secret{"ours", tc.tool.secret}))
		if err != nil {
			t.Fatal(err)
		}
		_, why := s.verify(tc.header, []byte(tc.tool.body), noon)
		if why == nil && tc.want != "" || why != nil && why.reason != tc.want {
			t.Errorf("%s: %v: %+v, want %q", tc.tool.name, tc.header, why, tc.want)
		}
	}
}

// Everything that is wrong is told at once, at construction.
func TestCustomFaults(t *testing.T) {
	t.Parallel()
	hmac := func(change func(*Auth)) Auth {
		a := Auth{Method: "hmac", Header: "X-Signature"}
		change(&a)
		return a
	}
	for name, tc := range map[string]struct {
		auth Auth
		m    Mapping
		want []string
	}{
		"nothing":           {Auth{}, Mapping{}, []string{"Method is \"\"", "Header is \"\""}},
		"another method":    {Auth{Method: "digest", Header: "X"}, Mapping{}, []string{"it has to be hmac, bearer or basic"}},
		"both halves":       {hmac(func(a *Auth) { a.Header = "" }), Mapping{ID: "a..b"}, []string{"Header is \"\"", "ID is"}},
		"all of hmac":       {Auth{"hmac", "X Y", "", "md5", "base32", "X:", "t=", "x"}, Mapping{}, []string{"Header is", "Hash is", "Encoding is", "both set", "TimeHeader is", "TimePart is", "{body} once", "needs {time}", "Prefix is \"\""}},
		"the same header":   {hmac(func(a *Auth) { a.TimeHeader = "x-signature" }), Mapping{}, []string{"TimeHeader is Header"}},
		"a part as prefix":  {hmac(func(a *Auth) { a.TimePart, a.Prefix = "t", "t=" }), Mapping{}, []string{"the same part"}},
		"parts in a prefix": {hmac(func(a *Auth) { a.TimePart, a.Prefix = "t", "v1=,v2=" }), Mapping{}, []string{"Prefix is"}},
		"no body":           {hmac(func(a *Auth) { a.Signed = "{time}" }), Mapping{}, []string{"{body} once", "neither TimeHeader nor TimePart"}},
		"the body twice":    {hmac(func(a *Auth) { a.Signed = "{body}{body}" }), Mapping{}, []string{"{body} once"}},
		"the time unsigned": {hmac(func(a *Auth) { a.TimeHeader, a.Signed = "X-Time", "{body}" }), Mapping{}, []string{"needs {time}"}},
		"a bearer signs":    {Auth{"bearer", "", "", "sha256", "hex", "X-Time", "t", "{body}"}, Mapping{}, []string{"Hash is set", "Encoding is set", "TimeHeader is set", "TimePart is set", "Signed is set"}},
		"a basic signs":     {Auth{Method: "basic", Hash: "sha1"}, Mapping{}, []string{"but basic signs nothing"}},
	} {
		_, err := made(Custom(tc.auth, tc.m))
		if err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want %q", name, err, want)
			}
		}
	}
	if _, err := made(Standard(Mapping{EventID: "id"})); err == nil || !strings.Contains(err.Error(), "webhook-id") {
		t.Errorf("Standard with EventID: %v", err)
	}
}

// Secrets that can be guessed, or that are not what the method needs, open no source; and none is
// printed.
func TestCustomSecrets(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ method, secret, want string }{
		{"hmac", "short-canary", "at least 16"}, {"bearer", "short-canary", "at least 16"}, {"bearer", strings.Repeat("x", 20), "over and over"},
		{"basic", "canary-without-a-colon", "user:password"}, {"basic", ":canary-without-a-user", "user:password"},
		{"basic", "a-very-long-user-name:canary", "its password: it has 6 bytes"}, {"bearer", " canary-with-blanks-around ", "blanks"},
	} {
		source := named{"s", Sender{Provider: custom(t, Auth{Method: tc.method, Header: "X-Auth"}), Secrets: []Secret{{"only", tc.secret}}}}
		_, err := newReceiver(&fakeInbox{}, []named{source}, nil)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s %q: %v; want %q", tc.method, tc.secret, err, tc.want)
		}
	}
	untimed := tools(t)[0].source(t, Secret{"ours", token})
	untimed.Tolerance = time.Minute
	if _, err := newReceiver(&fakeInbox{}, []named{untimed}, nil); err == nil || !strings.Contains(err.Error(), "a sender with X-API-Key signs no time") {
		t.Errorf("a tolerance without a time: %v", err)
	}
}

// An event with an id is known by it. Without one it is known by its content, and content that
// tells no time comes again when the same has happened again: after a minute it is another event.
func TestCustomRepetitions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		because  string
		m        Mapping
		body     string
		again    string
		at, late int // how many events there are at once, and a minute later
	}{
		{"its id", Mapping{EventID: "event", Body: ".", Type: "order"}, `{"id":1,"event":"e1"}`, `{"id":1,"event":"e1","try":2}`, 1, 1},
		{"another id", Mapping{EventID: "event", Body: ".", Type: "order"}, `{"id":1,"event":"e1"}`, `{"id":1,"event":"e2"}`, 2, 2},
		{"its content", Mapping{Body: ".", Type: "order"}, `{"id":1}`, `{"id":1}`, 1, 2},
		{"another content", Mapping{Body: ".", Type: "order"}, `{"id":1,"n":1}`, `{"id":1,"n":2}`, 2, 2},
		{"its content with a version", Mapping{Body: ".", Type: "order", Version: "v", Clock: inbox.CounterClock}, `{"id":1,"v":1}`, `{"id":1,"v":1}`, 1, 1},
		{"its content with a time", Mapping{Body: ".", Type: "order", At: "at"}, `{"id":1,"at":"2026-11-20T11:00:00Z"}`, `{"id":1,"at":"2026-11-20T11:00:00Z"}`, 1, 1},
	} {
		for wait, want := range map[time.Duration]int{0: tc.at, time.Minute: tc.late} {
			now := noon
			d := open(t, &Options{Now: func() time.Time { return now }}, tool{auth: Auth{Method: "bearer"}, mapping: tc.m}.source(t, Secret{"ours", token}))
			h := http.Header{"Authorization": {"bearer " + token}}
			first := d.post(t, "s", h, tc.body)
			now = now.Add(wait)
			if second := d.post(t, "s", h, tc.again); first != 200 || second != 200 || len(d.inbox.stored()) != want {
				t.Errorf("%s, after %s: answers %d and %d, %d events, want %d", tc.because, wait, first, second, len(d.inbox.stored()), want)
			}
		}
	}
}

// A genuine delivery is believed however its sender writes the time that it signs, and goes stale.
func TestSignedTimeInWords(t *testing.T) {
	t.Parallel()
	const secret, body = "a-secret-for-tests-only", `{"id":"1"}`
	s, err := newSource(named{"s", Sender{
		Provider: custom(t, Auth{Method: "hmac", Header: "X-Signature", TimeHeader: "X-Time", Signed: "{time}{body}"}),
		Secrets:  []Secret{{"only", secret}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, stamp := range []string{
		"2026-11-20T12:00:00Z", "2026-11-20T12:00:00.000+00:00", "2026-11-20T13:00:00+01:00", "Fri, 20 Nov 2026 12:00:00 GMT", "1795176000", "1795176000000", "1795176000.25",
	} {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(stamp + body))
		h := http.Header{"X-Signature": {hex.EncodeToString(mac.Sum(nil))}, "X-Time": {stamp}}
		if _, why := s.verify(h, []byte(body), noon.Add(time.Minute)); why != nil {
			t.Errorf("%s: %+v", stamp, why)
		}
		if _, why := s.verify(h, []byte(body), noon.Add(24*time.Hour)); why == nil || why.reason != TooOld {
			t.Errorf("%s, a day later: %+v", stamp, why)
		}
		h["X-Time"] = []string{"2026-11-20T12:00:01Z"}
		if _, why := s.verify(h, []byte(body), noon); why == nil || why.reason != WrongSignature {
			t.Errorf("%s, changed: %+v", stamp, why)
		}
	}
}
