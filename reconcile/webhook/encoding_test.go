package webhook

import (
	"bytes"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/intake"
)

// What is packed in deflate is unpacked, too. A genuine delivery in another encoding is taken
// as it came and said to be unreadable, by name: its sender cannot be made to pack it otherwise. What
// is forged is not looked at.
func TestEncodings(t *testing.T) {
	t.Parallel()
	var deflated bytes.Buffer
	z := zlib.NewWriter(&deflated)
	if _, err := io.WriteString(z, paid); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	twice := zipped(t, []byte(zipped(t, []byte(paid))))
	for _, tc := range []struct{ name, encoding, body, why string }{
		{"gzip", "gzip", zipped(t, []byte(paid)), ""},
		{"in capitals", "X-GZIP", zipped(t, []byte(paid)), ""},
		{"deflate", "deflate", deflated.String(), ""},
		{"identity", "identity", paid, ""},
		{"nothing", "", paid, ""},
		{"it only says deflate", "deflate", paid, ""},
		{"brotli", "br", "\x8b\x02\x80{}\x03", `"br"`},
		{"it only says brotli", "br", paid, `"br"`},
		{"zstd", "zstd", "\x28\xb5\x2f\xfd", `"zstd"`},
		{"one upon the other", "gzip, gzip", twice, `"gzip, gzip"`},
		{"in two lines", "gzip|br", twice, `"gzip,br"`},
		{"a control character", "x\x9b", paid, `"x�"`},
		{"cut gzip", "gzip", zipped(t, []byte(paid))[:40], "unexpected EOF"},
	} {
		d := open(t, nil, shop(t))
		h := signed(t, "msg_1", tc.body)
		h["Content-Encoding"] = strings.Split(tc.encoding, "|")
		answer := d.send(t, http.MethodPost, "/webhooks/shop", h, strings.NewReader(tc.body))
		events := d.inbox.stored()
		if answer.status != 200 || len(events) != 1 {
			t.Errorf("%s: answer %d, stored %+v", tc.name, answer.status, events)
			continue
		}
		logged := strings.Contains(d.log.String(), "could not be read")
		switch e := events[0]; {
		case logged != (tc.why != "") || logged && strings.Contains(d.log.String(), tc.why):
			t.Errorf("%s: the log: %s", tc.name, d.log)
		case tc.why == "" && (e.Disposition != "" || e.Object.ID != "10492"):
			t.Errorf("%s: %+v", tc.name, e)
		case tc.why != "" && (e.Disposition != intake.Malformed || !strings.Contains(e.Why, tc.why) || string(e.Body) != string(asText([]byte(tc.body)))):
			t.Errorf("%s: %+v, with the body %s", tc.name, e, e.Body)
		}
		h.Set("Webhook-Signature", "v1,"+strings.Repeat("A", 43)+"=")
		if got := d.post(t, "shop", h, tc.body); got != 401 {
			t.Errorf("%s, forged: answer %d", tc.name, got)
		}
	}
}

// What is unpacked takes of the memory for bodies, as what is read does.
func TestUnpackingTakesMemory(t *testing.T) {
	t.Parallel()
	tight := small(t)
	tight.Concurrent = 1
	s, err := newSource(tight)
	if err != nil {
		t.Fatal(err)
	}
	h, other, packed := s.hold(), s.hold(), zipped(t, []byte(padded(900)))
	h.prove()
	other.prove()
	for range 6 {
		if _, err := h.readAll(strings.NewReader(strings.Repeat("x", 511)), 1000); err != nil {
			t.Fatal(err)
		}
	}
	_, err = unpack(http.Header{"Content-Encoding": {"gzip"}}, []byte(packed), 1000, h)
	if !errors.Is(err, errFull) {
		t.Errorf("%v", err)
	}
	h.release()
	if _, err = unpack(http.Header{"Content-Encoding": {"gzip"}}, []byte(packed), 1000, other); err != nil {
		t.Error(err)
	}
}
