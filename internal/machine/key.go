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

// root is the root key of the revision that the work has.
func (st *State) root() string {
	if st.kept.root != "" && st.kept.revision == st.Revision {
		return st.kept.root
	}
	return RootKey(st.ID.Saga, st.ID.Work, st.Revision)
}

// keepRoot keeps the root key until the revision is another: each step derives from it.
func (st *State) keepRoot() {
	st.kept.root = st.root()
	st.kept.revision = st.Revision
}

// StepKey is the idempotency key of one step's effect in one direction. It is the same for every
// attempt. A reissue (a new key for the same intent, allowed only once a lookup or a person said
// that nothing happened) counts from 0.
func StepKey(root, step string, dir saga.Direction, reissue int) string {
	return deriveKey("amends/step/1", root, step, string(dir), strconv.Itoa(reissue))
}

func deriveKey(parts ...string) string {
	b := make([]byte, 0, 256)
	for _, p := range parts { // length-prefixed, so that ("ab","c") and ("a","bc") differ
		b = binary.BigEndian.AppendUint64(b, uint64(len(p)))
		b = append(b, p...)
	}
	sum := sha256.Sum256(b)
	return string(base64.RawURLEncoding.AppendEncode(append(b[:0], keyPrefix...), sum[:24]))
}
