package webhook

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"
)

// one returns the value of a header that must be there once. Twice is as bad as unreadable: a proxy
// in front of us may have read the other.
func one(h http.Header, name string) (string, error) {
	switch values := h.Values(name); {
	case len(values) == 0 || len(values) == 1 && values[0] == "":
		return "", errNoSignature
	case len(values) > 1:
		return "", errBadSignature
	default:
		return values[0], nil
	}
}

// base64Claim reads the signature of the body that a header holds in base64.
func base64Claim(header string) func(http.Header, []byte) (claim, error) {
	return func(h http.Header, body []byte) (claim, error) {
		text, err := one(h, header)
		if err != nil {
			return claim{}, err
		}
		sum, err := base64.StdEncoding.Strict().DecodeString(text)
		if err != nil {
			return claim{}, errBadSignature
		}
		return claim{Signed: [][]byte{body}, Signatures: []signature{{Bytes: sum}}}, nil
	}
}

// hexSignature reads a signature in hexadecimal.
func hexSignature(scheme, text string) (signature, error) {
	sum, err := hex.DecodeString(text)
	if err != nil || len(sum) == 0 {
		return signature{}, errBadSignature
	}
	return signature{Scheme: scheme, Bytes: sum}, nil
}

// signedTime reads the seconds since 1970 that a delivery was signed at: digits and nothing else.
func signedTime(text string) (time.Time, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return time.Time{}, errBadSignature
	}
	return time.Unix(int64(n), 0), nil
}
