package webhook

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// vector is a signature that this package had no part in.
type vector struct {
	name     string
	provider Provider
	secret   string
	header   map[string]string
	body     string
	at       time.Time
}

// Signatures that providers published: what Standard Webhooks and GitHub print in their documentation.
func published(tb testing.TB) []vector {
	tb.Helper()
	const payload = `{"test": 2432232314}`
	standard := map[string]string{
		"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
		"webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
	}
	svix := map[string]string{"svix-id": standard["webhook-id"], "svix-timestamp": "1614265330", "svix-signature": standard["webhook-signature"]}
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	at := time.Unix(1614265330, 0)
	return []vector{
		{"standard webhooks", orders(tb), secret, standard, payload, at},
		{"svix", orders(tb), secret, svix, payload, at},
		{"github", GitHub(), "It's a Secret to Everybody", map[string]string{
			"X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
		}, "Hello, World!", noon},
	}
}

// Signatures made with openssl by testdata/vectors.sh.
func independent(tb testing.TB) []vector {
	tb.Helper()
	header := func(name, value string) map[string]string { return map[string]string{name: value} }
	standard := func(signature string) map[string]string {
		return map[string]string{"Webhook-Id": "msg_1", "Webhook-Timestamp": "1763634600", "Webhook-Signature": signature}
	}
	const plain = "a-secret-for-tests-only"
	at := time.Unix(1763634600, 0)
	return []vector{
		{"stripe", Stripe(), "whsec_stripe_test_secret_0001",
			header("Stripe-Signature", "t=1720000001,v1=3af1daaa3eac5cbbafd2f516faa251d6bd46d47b2e6ebcb514e8d04ecaee061c,v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39"),
			fixture(tb, "stripe.json"), time.Unix(1720000001, 0)},
		{"woocommerce", WooCommerce(), plain, header("X-WC-Webhook-Signature", "yBoYFp58wY6L4fPGvJ127Xd9aUVG6B4Jy3DrcBQeX0o="), fixture(tb, "woocommerce.json"), noon},
		{"shopify", Shopify(), plain, header("X-Shopify-Hmac-SHA256", "RsMuml92KJ9uGJkpj/v9cmQx7EXb/J5uiNtwthWs20s="), fixture(tb, "shopify.json"), noon},
		{"xero", Xero(), plain, header("x-xero-signature", "WNhKa6hvGD8gNS5oL8TUXaOoQfqp8NQ9VaYXt2bbRDo="), fixture(tb, "xero.json"), noon},
		{"quickbooks", QuickBooks(), plain, header("intuit-signature", "ZrkDI2efvTLy1DMmVFNEmPF5GfEcEvF/ZBdZZgaA/OA="), fixture(tb, "quickbooks.json"), noon},
		{"quickbooks cloud events", QuickBooks(), plain, header("intuit-signature", "ta1jjeGXWTng7bFeTwea4M6U7D/NHUVIRdeSweVcYA4="), fixture(tb, "quickbooks-cloudevents.json"), noon},
		{"github", GitHub(), plain, header("X-Hub-Signature-256", "sha256=a0f70d31009c2e197e2984241c9d2bd6dd8d16be847e0e355ec4974c3b627be3"), fixture(tb, "github.json"), noon},
		{"standard v1", orders(tb), "whsec_YS1zZWNyZXQtZm9yLXRlc3RzLW9ubHkh", standard("v1,w4bXWrbh6GJVWNvVF7WT2Fp0LNC3DvH/f+HRseol7j0="), fixture(tb, "standard.json"), at},
		{"standard v1a", orders(tb), "whpk_6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw=",
			standard("v1a,dhozk4+Q5ziPzToWDAYV+Xv6+K2cmuxhMT8b6WfUzwx60j+VAj8XwfPhvZp4lyhNzUQPXTfi8OsK1Et98YOACA=="), fixture(tb, "standard.json"), at},
	}
}

// reason verifies a delivery as the receiver does, and returns why it is not believed.
func (v vector) reason(t *testing.T, header map[string]string, body string) Reason {
	t.Helper()
	s, err := newSource(Source{Name: "s", Provider: v.provider, Secrets: []Secret{{"only", v.secret}}, Headers: trusting(v.provider)})
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	for name, value := range header {
		h.Set(name, value)
	}
	_, why := s.verify(h, []byte(body), v.at)
	if why == nil {
		return ""
	}
	return why.reason
}

// A1: what the provider signed is believed. A2: with one bit flipped in any byte of the body it is not, nor in a signed
// id or time, nor in the signature itself. Nor is it with another secret.
func TestVectors(t *testing.T) {
	t.Parallel()
	for _, v := range append(published(t), independent(t)...) {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			if why := v.reason(t, v.header, v.body); why != "" {
				t.Fatalf("A1: refused: %s", why)
			}
			for i := range v.body {
				if v.reason(t, v.header, flip(v.body, i, i%8)) != WrongSignature {
					t.Fatalf("A2: believed with a bit of byte %d of the body flipped", i)
				}
			}
			for name, value := range v.header {
				value, rest := split(value)
				for i := range value {
					changed := cloneWith(v.header, name, value[:i]+other(value[i])+value[i+1:]+rest)
					if why := v.reason(t, changed, v.body); why == "" {
						t.Fatalf("A2: believed with character %d of %s changed", i, name)
					}
				}
			}
			wrong := v
			wrong.secret = v.secret[:len(v.secret)-4] + "AAA="
			if why := wrong.reason(t, v.header, v.body); why != WrongSignature {
				t.Errorf("A2: with another secret: %q", why)
			}
		})
	}
}

// split cuts off what is not part of any signature: Stripe's v0.
func split(value string) (signed, rest string) {
	i := strings.Index(value, ",v0=")
	if i < 0 {
		return value, ""
	}
	return value[:i], value[i:]
}

func flip(s string, at, bit int) string {
	b := []byte(s)
	b[at] ^= 1 << bit
	return string(b)
}

// other is another character of the same kind.
func other(c byte) string {
	switch c {
	case '1':
		return "2"
	case 'a':
		return "b"
	case 'A':
		return "B"
	}
	return "a"
}

func cloneWith(header map[string]string, name, value string) map[string]string {
	changed := map[string]string{name: value}
	for n, v := range header {
		if n != name {
			changed[n] = v
		}
	}
	return changed
}

// What SignStandard and SignWooCommerce put into the header is what the published and independent signatures say.
func TestSign(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	const secret, id = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek"
	if err := SignStandard(h, secret, id, time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`)); err != nil {
		t.Fatal(err)
	}
	for name, want := range published(t)[0].header {
		if got := h.Get(name); got != want {
			t.Errorf("%s = %q; want %q", name, got, want)
		}
	}
	SignWooCommerce(h, "a-secret-for-tests-only", []byte(fixture(t, "woocommerce.json")))
	if got, want := h.Get(wooSignature), "yBoYFp58wY6L4fPGvJ127Xd9aUVG6B4Jy3DrcBQeX0o="; got != want {
		t.Errorf("signature of WooCommerce = %q; want %q", got, want)
	}
	for name, err := range map[string]error{
		"short secret": SignStandard(h, "whsec_c2hvcnQ=", id, noon, nil),
		"no base64":    SignStandard(h, "whsec_!", id, noon, nil),
		"no id":        SignStandard(h, secret, "", noon, nil),
		"dotted id":    SignStandard(h, secret, "msg.1", noon, nil),
	} {
		if err == nil {
			t.Errorf("%s: it was signed", name)
		}
	}
}

// Signatures of handshakes, made by testdata/vectors.sh as those above.
const (
	intentSignature = "5+gW4BvIs8xnGxnHWQrg10kL5wDsBFtGEw4QdcXjiU4="
	zenSignature    = "sha256=e12f99ae6d79b17bc535e7aad1947df5df9889593213a2b5fc6c4c613f4a0d69"
)
