package coordinator

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
)

// secrets make the tokens of callbacks: a token is the id of its secret and a MAC of the key of the request that carries it. So
// every attempt under one key has the same, and no table that is read has what could be sent as one.
type secrets struct {
	newest string
	byID   map[string][]byte
}

func newSecrets(all [][]byte) secrets {
	s := secrets{byID: map[string][]byte{}}
	for i, secret := range all {
		sum := sha256.Sum256(append([]byte("amends/secret/1\x00"), secret...))
		id := hex.EncodeToString(sum[:4])
		if s.byID[id] = secret; i == 0 {
			s.newest = id
		}
	}
	return s
}

// token is the one that a request under key carries; "" when its secret is not there any more.
func (s secrets) token(id, key string) string {
	secret := s.byID[id]
	if secret == nil {
		return ""
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("amends/callback/1\x00" + key))
	return id + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// digestOf is by what a token is found.
func digestOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
