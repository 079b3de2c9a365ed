package webhook

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/intake"
)

// A signature of a scheme that is not known here, in whatever form, keeps no genuine one beside
// it from being believed.
func TestUnknownSchemesAreSkipped(t *testing.T) {
	t.Parallel()
	d := open(t, nil, shop(t), named{"stripe", Sender{Provider: Stripe(), Secrets: []Secret{{"only", "whsec_stripe_test_secret_0001"}}, Tolerance: NoTolerance}})
	genuine := signed(t, "msg_1", paid)
	good := genuine.Get("Webhook-Signature")
	for _, list := range []string{good + " v2,ab_-cd", good + " v2:x", "v2,*** " + good, "v9,AAAA " + good, good + " v1", good + "  "} {
		h := genuine.Clone()
		h.Set("Webhook-Signature", list)
		if got := d.post(t, "shop", h, paid); got != 200 {
			t.Errorf("%q: answer %d", strings.ReplaceAll(list, good, "GOOD"), got)
		}
	}
	v := independent(t)[0]
	for _, extra := range []string{",v1=invalid", ",v2=abc", ",v2:x", ",v1="} {
		h := http.Header{}
		h.Set("Stripe-Signature", v.header["Stripe-Signature"]+extra)
		if got := d.post(t, "stripe", h, v.body); got != 200 {
			t.Errorf("Stripe, %q behind the genuine one: answer %d", extra, got)
		}
	}
}

// A provider of the user's may read as many signatures as it likes; more than 16 are not tried.
func TestSignaturesAreBounded(t *testing.T) {
	t.Parallel()
	tried, n := 0, 0
	p := Provider{
		name:  "theirs",
		key:   func(string) (proof, error) { return func(claim) bool { tried++; return true }, nil },
		claim: func(http.Header, []byte) (claim, error) { return claim{Signatures: make([]signature, n)}, nil },
		parse: func(message) ([]intake.Event, error) { return nil, nil },
	}
	d := open(t, nil, named{"theirs", Sender{Provider: p, Secrets: []Secret{{"only", "some-secret-text-here"}}}})
	for n = range 18 {
		tried = 0
		got, want := d.post(t, "theirs", http.Header{}, "{}"), 200
		if n == 0 || n > 16 {
			want = 401
		}
		if got != want || (tried > 0) != (want == 200) {
			t.Errorf("%d signatures: answer %d, tried %d times", n, got, tried)
		}
	}
}

// Deliveries of long ago, captured and sent again, say nothing about our clock.
func TestReplaysRaiseNoClockAlarm(t *testing.T) {
	t.Parallel()
	alarms := 0
	d := open(t, &Options{Listener: &Listener{ClockAlarm: func(string, time.Duration, int) { alarms++ }}}, shop(t))
	for _, ahead := range []time.Duration{-time.Hour, -time.Hour, -2 * time.Hour, -3 * time.Hour, -time.Hour, -time.Hour, -4 * time.Hour, -5 * time.Hour, -time.Hour} {
		for range 5 {
			if got := d.post(t, "shop", signedAt(t, "msg_1", paid, newSecret, noon.Add(ahead)), paid); got != 401 {
				t.Errorf("answer %d", got)
			}
		}
	}
	if alarms != 0 || strings.Contains(d.log.String(), "clock is probably wrong") {
		t.Errorf("%d alarms of five captured deliveries", alarms)
	}
}

// What may be a public key, or can be guessed, is no secret.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	for secret, fault := range map[string]string{
		"6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw=":                              "begin with whsec_",
		"whpk_" + base64.StdEncoding.EncodeToString(make([]byte, 32)):               "one byte over and over",
		"whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("a"), 16)): "one byte over and over",
		"": "begin with whsec_",
	} {
		_, err := newReceiver(&fakeInbox{}, []named{{"shop", Sender{Provider: orders(t), Secrets: []Secret{{"only", secret}}}}}, nil)
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%q: %v; want %q", secret, err, fault)
		}
	}
}
