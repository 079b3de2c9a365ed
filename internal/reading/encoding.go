package reading

import (
	"bufio"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// EncodingError is a content encoding that cannot be read.
type EncodingError string

func (e EncodingError) Error() string {
	return fmt.Sprintf("the body is in the encoding %.40q, which cannot be read; gzip and deflate can", string(e))
}

// Plain is a body without its content encoding. What only says that it has one is read as it is.
// Who reads it bounds how much: a few bytes unfold to a thousand times as many.
func Plain(h http.Header, body io.Reader) (io.Reader, error) {
	encoding := strings.ToLower(strings.TrimSpace(strings.Join(h.Values("Content-Encoding"), ",")))
	var unfold func(io.Reader) (io.Reader, error)
	var begins func(head []byte) bool
	switch encoding {
	case "", "identity":
		return body, nil
	case "gzip", "x-gzip":
		unfold = func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }
		begins = func(head []byte) bool { return string(head) == "\x1f\x8b" }
	case "deflate":
		unfold = func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) }
		begins = func(head []byte) bool {
			return len(head) == 2 && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0
		}
	}
	buffered := bufio.NewReader(body)
	head, err := buffered.Peek(2)
	switch {
	case len(head) == 0 && err == io.EOF:
		return buffered, nil
	case unfold == nil:
		return nil, EncodingError(encoding)
	case !begins(head):
		return buffered, nil
	}
	return unfold(buffered)
}
