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

// Signatures that providers published: what Standard Webhooks, GitHub and Slack print in their
// documentation.
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
		{"github by Custom", custom(tb, Auth{Method: "hmac", Header: "X-Hub-Signature-256", Prefix: "sha256="}), "It's a Secret to Everybody",
			map[string]string{"X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}, "Hello, World!", noon},
		{"slack by Custom", custom(tb, Auth{
			Method: "hmac", Header: "X-Slack-Signature", Prefix: "v0=", TimeHeader: "X-Slack-Request-Timestamp", Signed: "v0:{time}:{body}",
		}), "8f742231b10e8888abcd99yyyzzz85a5", map[string]string{
			"X-Slack-Request-Timestamp": "1531420618",
			"X-Slack-Signature":         "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
		}, "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&" +
			"user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2F" +
			"commands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
			time.Unix(1531420618, 0)},
	}
}

func custom(tb testing.TB, a Auth) Provider {
	tb.Helper()
	p, err := made(Custom(a, Mapping{Topic: "event", Body: ".", Type: "order"}))
	if err != nil {
		tb.Fatal(err)
	}
	return p
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
		{"custom, base64", custom(tb, Auth{Method: "hmac", Header: "Typeform-Signature", Prefix: "sha256=", Encoding: "base64"}), plain,
			header("Typeform-Signature", "sha256=Uyp+I21k0CoOeKRUIk/TdqhuxnAbHMoqvpJPPK3LT2Q="), fixture(tb, "typeform.json"), noon},
		{"custom, time in its header", custom(tb, Auth{Method: "hmac", Header: "X-Signature", TimePart: "t", Prefix: "v1="}), plain,
			header("X-Signature", "t=1795176000,v1=0ca857538a1065aae592583a71923f22587747de1fbbfef22932cc1a946cb5fa"), fixture(tb, "homegrown.json"), noon},
		{"custom, milliseconds and sha512", custom(tb, Auth{
			Method: "hmac", Header: "X-Signature", TimePart: "ts", Prefix: "h1=", Hash: "sha512", Signed: "{time}:{body}",
		}), plain, header("X-Signature", "ts=1795176000000;h1=c5d3b36738d801a1abe7c4c5bc9e2075ceb60e915c78d290f396bf13dbc2c34b2fcb8027a93cdce611188732b9ccbc80dd38b3dcabbeb709c20548246ac4bdd2"),
			fixture(tb, "homegrown.json"), noon},
		{"custom, sha1", custom(tb, Auth{Method: "hmac", Header: "X-Hub-Signature", Prefix: "sha1=", Hash: "sha1"}), plain,
			header("X-Hub-Signature", "sha1=a10393e2913d64599a9f44159a2ddc8880467e26"), fixture(tb, "homegrown.json"), noon},
		{"custom, time behind the body", custom(tb, Auth{Method: "hmac", Header: "X-Signature", TimeHeader: "X-Timestamp", Signed: "{body}|{time}"}), plain,
			map[string]string{"X-Signature": "5f3039d0bdd64972602c91993767021ccfcb382f1a526843578298fdd5760ae2", "X-Timestamp": "1795176000"},
			fixture(tb, "homegrown.json"), noon},
		{"standard v1", orders(tb), "whsec_YS1zZWNyZXQtZm9yLXRlc3RzLW9ubHkh", standard("v1,w4bXWrbh6GJVWNvVF7WT2Fp0LNC3DvH/f+HRseol7j0="), fixture(tb, "standard.json"), at},
		{"standard v1a", orders(tb), "whpk_6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw=",
			standard("v1a,dhozk4+Q5ziPzToWDAYV+Xv6+K2cmuxhMT8b6WfUzwx60j+VAj8XwfPhvZp4lyhNzUQPXTfi8OsK1Et98YOACA=="), fixture(tb, "standard.json"), at},
	}
}

// reason verifies a delivery as the receiver does, and returns why it is not believed.
func (v vector) reason(t *testing.T, header map[string]string, body string) Refusal {
	t.Helper()
	s, err := newSource(named{"s", Sender{Provider: v.provider, Secrets: []Secret{{"only", v.secret}}, Headers: trusting(v.provider)}})
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

// What the provider signed is believed. With one bit flipped in any byte of the body it is
// not, nor in a signed id or time, nor in the signature itself. Nor is it with another secret.
func TestVectors(t *testing.T) {
	t.Parallel()
	for _, v := range append(published(t), independent(t)...) {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			if why := v.reason(t, v.header, v.body); why != "" {
				t.Fatalf("refused: %s", why)
			}
			for i := range v.body {
				if v.reason(t, v.header, flip(v.body, i, i%8)) != WrongSignature {
					t.Fatalf("believed with a bit of byte %d of the body flipped", i)
				}
			}
			for name, value := range v.header {
				value, rest := split(value)
				for i := range value {
					changed := cloneWith(v.header, name, value[:i]+other(value[i])+value[i+1:]+rest)
					if why := v.reason(t, changed, v.body); why == "" {
						t.Fatalf("believed with character %d of %s changed", i, name)
					}
				}
			}
			wrong := v
			wrong.secret = v.secret[:len(v.secret)-4] + "AAA="
			if why := wrong.reason(t, v.header, v.body); why != WrongSignature {
				t.Errorf("with another secret: %q", why)
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

// What SignStandard and SignWooCommerce put into the header is what the published and independent
// signatures say.
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
