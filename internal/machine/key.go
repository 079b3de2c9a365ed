package machine

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strconv"

	"github.com/amends-dev/amends/saga"
)

// keyPrefix makes a key recognisable in a destination's logs. With 24 bytes of hash in base64 a key
// has 35 characters, under the 36 that the strictest destinations allow, and needs no escaping in a
// URL.
const keyPrefix = "am-"

// RootKey is the idempotency key of a whole work at one revision of its source object. Step keys
// derive from it. It names the business intent and nothing else: not the attempt, not the time, and
// not the definition's version, so that an upgrade never sends twice.
func RootKey(sagaName, work, revision string) string {
	return deriveKey("amends/work/1", sagaName, work, revision)
}

// StepKey is the idempotency key of one step's effect in one direction. It is the same for every
// attempt. A reissue (a new key for the same intent, allowed only once a lookup or a person said
// that nothing happened) counts from 0.
func StepKey(root, step string, dir saga.Direction, reissue int) string {
	return deriveKey("amends/step/1", root, step, string(dir), strconv.Itoa(reissue))
}

func deriveKey(parts ...string) string {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts { // length-prefixed, so that ("ab","c") and ("a","bc") differ
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return keyPrefix + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:24])
}
