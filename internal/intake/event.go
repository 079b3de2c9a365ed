package intake

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Payload says what the body of an event is worth.
type Payload string

// What an event can carry.
const (
	Whole Payload = "full"  // the whole object as it was at the event's version
	Delta Payload = "delta" // a change to the object as it was at the version before
	Thin  Payload = "thin"  // nothing, or a part: only that the object changed
)

// Event is one thing that one verified delivery says about one object. A delivery that speaks of
// several objects is several events.
type Event struct {
	Object  Object
	Topic   string // what happened, in the provider's word: order.updated
	ID      string // the provider's id of the event or delivery, for people
	Dedupe  Digest // two deliveries of one event have the same, and no other event of the source has
	Payload Payload
	Deleted bool    // the event says that the object is gone
	Version Version // of the object; zero when the event does not tell
	Body    json.RawMessage
	// Fingerprint is over the body without what changes by itself; see [Fingerprint]. Zero for thin
	// events.
	Fingerprint Digest
	At          time.Time // when it happened, if the event says so; never compared across sources
	Received    time.Time // our clock, at the door
	Secret      string    // the name of the secret whose signature matched
	// Disposition is set when the receiver already knows that nothing will come of the event
	// ([Malformed], [Unknown], [Ignored]); it is stored with its Why and is not judged again.
	Disposition Disposition
	Why         string // of the Disposition; without one, what keeps the event from being more than a hint
}

// Digest is 16 bytes of a SHA-256.
type Digest [16]byte

// IsZero reports whether nothing was digested.
func (d Digest) IsZero() bool { return d == Digest{} }

// MarshalText and UnmarshalText put d into stored documents, in hexadecimal.
func (d Digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText reads what MarshalText wrote.
func (d *Digest) UnmarshalText(text []byte) error {
	if len(text) != 2*len(d) {
		return fmt.Errorf("a digest has %d hexadecimal digits, not %d", 2*len(d), len(text))
	}
	_, err := hex.Decode(d[:], text)
	return err
}

// DigestOf digests parts, each with its length before it, so that ("ab", "c") and ("a", "bc")
// differ.
func DigestOf(parts ...string) Digest {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return Digest(h.Sum(nil)[:16])
}
