package webhook

import (
	"bytes"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A12: what is packed in deflate is unpacked, too. Another encoding is told to its sender, who is not
// told that it was taken, and only where it has signed.
func TestEncodings(t *testing.T) {
	t.Parallel()
	var deflated bytes.Buffer
	z := zlib.NewWriter(&deflated)
	if _, err := io.WriteString(z, paid); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, encoding, body string
		status               int
		stored               int
	}{
		{"gzip", "gzip", zipped(t, []byte(paid)), 200, 1},
		{"in capitals", "X-GZIP", zipped(t, []byte(paid)), 200, 1},
		{"deflate", "deflate", deflated.String(), 200, 1},
		{"identity", "identity", paid, 200, 1},
		{"nothing", "", paid, 200, 1},
		{"it only says deflate", "deflate", paid, 200, 1},
		{"brotli", "br", paid, 415, 0},
		{"zstd", "zstd", "\x28\xb5\x2f\xfd", 415, 0},
		{"one upon the other", "gzip, gzip", zipped(t, []byte(zipped(t, []byte(paid)))), 415, 0},
	} {
		d := open(t, nil, shop(t))
		h := signed(t, "msg_1", tc.body)
		h.Set("Content-Encoding", tc.encoding)
		answer := d.send(t, http.MethodPost, "/webhooks/shop", h, strings.NewReader(tc.body))
		events := d.inbox.stored()
		if answer.status != tc.status || len(events) != tc.stored {
			t.Errorf("%s: answer %d, stored %+v", tc.name, answer.status, events)
		}
		if tc.stored == 1 && (events[0].Disposition != "" || events[0].Object.ID != "10492") {
			t.Errorf("%s: %+v", tc.name, events[0])
		}
		if tc.status == 415 && (!slices.Equal(d.reasons(), []Refusal{UnknownEncoding}) || answer.header.Get("Accept-Encoding") != "gzip, deflate") {
			t.Errorf("%s: refused for %v, %v", tc.name, d.reasons(), answer.header)
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
	h, packed := s.hold(), zipped(t, []byte(padded(900)))
	for range 2 {
		if _, err := h.readAll(strings.NewReader(strings.Repeat("x", 512)), 1000); err != nil {
			t.Fatal(err)
		}
	}
	_, err = unpack(http.Header{"Content-Encoding": {"gzip"}}, []byte(packed), 1000, h)
	if !errors.Is(err, errFull) || unpackable(err).reason != Busy {
		t.Errorf("%v", err)
	}
	h.release()
	if _, err = unpack(http.Header{"Content-Encoding": {"gzip"}}, []byte(packed), 1000, s.hold()); err != nil {
		t.Error(err)
	}
}
