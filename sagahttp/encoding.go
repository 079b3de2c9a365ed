package sagahttp

import (
	"bufio"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// plain is the body of an answer without its content encoding. The client declines every encoding,
// and is sent one all the same: a success that is not read would be in doubt for no reason.
func plain(answer *http.Response) (io.Reader, error) {
	encoding := strings.ToLower(strings.TrimSpace(strings.Join(answer.Header.Values("Content-Encoding"), ",")))
	if encoding == "" || encoding == "identity" {
		return answer.Body, nil
	}
	body := bufio.NewReader(answer.Body)
	head, err := body.Peek(2)
	if len(head) == 0 && err == io.EOF { //nolint:errorlint // Peek returns it as it is
		return body, nil
	}
	switch encoding {
	case "gzip", "x-gzip":
		if string(head) != "\x1f\x8b" { // it only says so
			return body, nil
		}
		return gzip.NewReader(body)
	case "deflate":
		if len(head) < 2 || head[0]&0x0f != 8 || (int(head[0])<<8|int(head[1]))%31 != 0 { // the same
			return body, nil
		}
		return zlib.NewReader(body)
	default:
		return nil, fmt.Errorf("the body is in the encoding %.40q, which was declined and cannot be read", encoding)
	}
}
