package sagahttp_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
)

func zipped(t *testing.T, by func(io.Writer) io.WriteCloser, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := by(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func byGzip(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
func byZlib(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }

// What the client cannot decode it has declined, and what comes encoded all the same it decodes: a
// success that is not read would be in doubt for no reason.
func TestEncodedAnswer(t *testing.T) {
	t.Parallel()
	const body = `{"id":"inv_1"}`
	gzipped := zipped(t, byGzip, body)
	for _, tc := range []struct {
		name, header, body string
		id                 string // "": it cannot be read
		words              string
	}{
		{"gzip", "gzip", gzipped, "inv_1", ""},
		{"its other name, in capitals", "X-GZIP", gzipped, "inv_1", ""},
		{"deflate", "deflate", zipped(t, byZlib, body), "inv_1", ""},
		{"identity", "identity", body, "inv_1", ""},
		{"it only says gzip", "gzip", body, "inv_1", ""},
		{"it only says deflate", "deflate", body, "inv_1", ""},
		{"another", "br", "\x0b\x02\x80", "", `the body is in the encoding "br", which cannot be read; gzip and deflate can`},
		{"one upon the other", "gzip, gzip", gzipped, "", `the encoding "gzip, gzip"`},
		{"cut", "gzip", gzipped[:len(gzipped)-12], "", "its body was cut"},
		{"a bomb", "gzip", zipped(t, byGzip, `{"id":"`+strings.Repeat("x", 1<<20)+`"}`), "", "larger than Options.MaxAnswer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := answer(t, "201 Created\r\nContent-Encoding: "+tc.header, tc.body)
			ctx, _ := gated(t, nil)
			var made invoice
			_, err := dial(t, w.URL(), &sagahttp.Options{MaxAnswer: 1000}).Do(ctx, sagahttp.Request{Method: "POST", Path: "/x", Into: &made})
			if tc.id != "" {
				if err != nil || made.ID != tc.id {
					t.Errorf("%q, %v", made.ID, err)
				}
				return
			}
			wantClass(t, err, saga.Unknown)
			if !strings.Contains(err.Error(), tc.words) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	t.Run("an answer without a body", func(t *testing.T) {
		t.Parallel()
		w := answer(t, "204 No Content\r\nContent-Encoding: gzip", "")
		ctx, _ := gated(t, nil)
		if _, err := dial(t, w.URL(), nil).Do(ctx, sagahttp.Request{Method: "POST", Path: "/x", Into: new(invoice)}); err != nil {
			t.Error(err)
		}
	})
	t.Run("a refusal is read, too", func(t *testing.T) {
		t.Parallel()
		w := answer(t, "422 X\r\nContent-Type: application/json\r\nContent-Encoding: gzip", zipped(t, byGzip, `{"message":"no such customer"}`))
		ctx, _ := gated(t, nil)
		_, err := dial(t, w.URL(), nil).Do(ctx, post)
		if wantClass(t, err, saga.Refused); !strings.Contains(err.Error(), "no such customer") {
			t.Error(err)
		}
	})
	t.Run("every encoding is declined, unless the user asks for one", func(t *testing.T) {
		t.Parallel()
		for want, o := range map[string]*sagahttp.Options{"identity": nil, "gzip": {Header: http.Header{"Accept-Encoding": {"gzip"}}}} {
			asked := make(chan string, 1)
			w := serve(t, func(_ *wire, c net.Conn, r arrival) bool {
				asked <- strings.Join(r.header.Values("Accept-Encoding"), "; ")
				return say(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
			})
			ctx, _ := gated(t, nil)
			if _, err := dial(t, w.URL(), o).Do(ctx, post); err != nil {
				t.Fatal(err)
			}
			if got := <-asked; got != want {
				t.Errorf("it asks for %q, want %q", got, want)
			}
		}
	})
}
