package reading

import (
	"bytes"
	"fmt"
	"math/big"
	"mime"
	"strings"

	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// undecoded stands for what a charset has no letter for: no UTF-8, so that it is an error where it
// is read, and nowhere else.
var undecoded = []byte{0xff}

// Text returns a body in UTF-8, without a byte order mark. It is decoded from the charset that the
// Content-Type declares; one that is not known is an error. ASCII is UTF-8.
func Text(contentType string, body []byte) ([]byte, error) {
	_, parameters, _ := mime.ParseMediaType(contentType) // what cannot be read declares nothing
	charset := strings.ToLower(strings.TrimSpace(parameters["charset"]))
	switch charset {
	case "", "utf-8", "utf8", "us-ascii", "ascii":
		return bytes.TrimPrefix(body, []byte("\uFEFF")), nil
	}
	encoding, err := htmlindex.Get(charset)
	if err != nil {
		return nil, fmt.Errorf("its charset is %.40q, which is not known", charset)
	}
	text, _, err := transform.Bytes(unicode.BOMOverride(encoding.NewDecoder()), body)
	if err != nil {
		return nil, fmt.Errorf("it cannot be decoded from %q", charset)
	}
	return bytes.ReplaceAll(text, []byte("\uFFFD"), undecoded), nil
}

// maxNumber bounds what is read as a whole number, in bytes.
const maxNumber = 255

// Whole writes a whole number with digits alone, however it came: 105, 105.0 and 1.05e2 are one id,
// as they are one number where bodies are compared.
func Whole(text string) (digits string, ok bool) {
	if n := strings.TrimPrefix(text, "-"); n != "" && strings.Trim(n, "0123456789") == "" && text != "-0" {
		return text, true
	}
	_, power, _ := strings.Cut(strings.ToLower(text), "e")
	if n := strings.TrimLeft(power, "+-0"); len(text) > maxNumber || len(n) > 2 { // 1e999999999 is a gigabyte of digits
		return "", false
	}
	if strings.Trim(text, "+-.eE0123456789") != "" { // a big.Rat is more: 4/2, 0x10
		return "", false
	}
	n, ok := new(big.Rat).SetString(text)
	if !ok || !n.IsInt() {
		return "", false
	}
	return n.Num().String(), true
}
