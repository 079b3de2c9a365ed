package machine

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/amends-dev/amends/saga"
)

// Kind says what a record tells: what was learned, or decided.
type Kind string

// The kinds of records.
const (
	KindStarted    Kind = "started"           // the work was accepted; Body is its input
	KindDispatched Kind = "dispatched"        // nothing was learned; the record arms an attempt (backoff over, slot in hand)
	KindDone       Kind = "done"              // an attempt succeeded; Body is its output
	KindNotSent    Kind = "not-sent"          // an attempt provably had no effect
	KindRefused    Kind = "refused"           // the destination said no
	KindUnknown    Kind = "unknown"           // an attempt ended and its outcome is unknown
	KindLost       Kind = "lost"              // an attempt's process died; its outcome is unknown
	KindFault      Kind = "fault"             // the definition or the action is wrong; nothing was sent
	KindFound      Kind = "found"             // a settled lookup found the effect; it is adopted as done
	KindUnfinished Kind = "unfinished"        // a settled lookup found it half-made; the next attempt resumes it
	KindNotFound   Kind = "not-found"         // a settled lookup found nothing
	KindUnclear    Kind = "unclear"           // a lookup could not tell
	KindSeveral    Kind = "several"           // a lookup found more than one: a duplicate at the destination
	KindResolved   Kind = "resolved"          // a person's resolution on a step in review
	KindCancelled  Kind = "cancelled"         // a cancel was accepted; the work turns to compensation
	KindNoted      Kind = "noted"             // nothing was learned of a step: a signal that changes nothing, a policy used up, the end
	KindParked     Kind = "sent-to-review"    // put aside for a person
	KindPaused     Kind = "paused"            // a person holds the work where it is
	KindResumed    Kind = "resumed"           // taken up again where it was parked
	KindRetried    Kind = "retried"           // a person has the step at issue tried again, under its key
	KindSkipped    Kind = "skipped"           // a person says that the step did not happen and will not; Body is the result later steps find
	KindHeard      Kind = "revision-received" // the source has a newer version; it waits for a step boundary. Body is its input, empty when the source cancelled
	KindRevised    Kind = "revised"           // the work begins again for a newer version of its source object
	KindForgotten  Kind = "forgotten"         // the database went back: what the work armed since is not known
	KindAdopted    Kind = "adopted"           // the ledger was lost: what stands of a step, as its destination tells; Body is its output
)

// HashSize is the number of bytes kept of a record's SHA-256.
const HashSize = 16

// Hash identifies a record and, through its predecessor's hash, everything before it.
type Hash [HashSize]byte

// String returns h in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText and UnmarshalText put h in snapshots and JSON as String does.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) != 2*HashSize {
		return fmt.Errorf("a hash has %d hexadecimal digits, not %d", 2*HashSize, len(text))
	}
	_, err := hex.Decode(h[:], text)
	return err
}

// Token is a session's random name. It is in every record the session wrote. Zero means no session.
type Token int64

// String returns t as 16 hexadecimal digits.
func (t Token) String() string { return fmt.Sprintf("%016x", uint64(t)) }

// Record is one line of the ledger: one decision. It says what was learned and what was thereby set
// in motion. A work's records form a chain: each names its predecessor by number and hash.
type Record struct {
	Seq     int64     // 1 for the first record of a work
	Hash    Hash      // over everything below but At, and the predecessor's hash
	Session Token     // the writer
	At      time.Time // the database's clock when the record was stored; not hashed

	Kind        Kind
	Version     int            // KindStarted, KindHeard, KindRevised: the definition's version
	Revision    string         // the version of the source object that the record speaks of, if it speaks of one
	Nonce       int64          // KindStarted: random; tells two equal starts by one session apart
	Step        string         // which step was learned about
	Direction   saga.Direction // of that step
	Attempt     int            // of that step in that direction, from 1
	ExternalID  string         // what the destination calls the thing we made
	Body        json.RawMessage
	BodyDropped bool       // the body was too large or not serialisable and is not kept
	Class       saga.Class // of the error
	Error       string     // the error's text, or a person's words; never a body
	Signals     []int64

	Status saga.Status   // where the work stands after this record
	Reason saga.Reason   // why, when Status is review
	Wait   time.Duration // the work is due again at At+Wait; 0 while it is being worked on

	Dispatch *Dispatch       // the attempt this record arms, if any
	Snapshot json.RawMessage // the folded state before this record, so that loading can begin here
}

// Dispatch is the intent of one attempt, durable before anything is sent.
type Dispatch struct {
	Step      string
	Direction saga.Direction
	Attempt   int
	Key       string        // the same for every attempt of this step, direction and reissue
	Reissue   int           // how often a new key was allowed
	Budget    time.Duration // the attempt's deadline is the record's At + Budget
}

// Deadline is when nothing of the armed attempt may leave or be awaited any more. Zero when r arms
// nothing.
func (r *Record) Deadline() time.Time {
	if r.Dispatch == nil {
		return time.Time{}
	}
	return r.At.UTC().Add(r.Dispatch.Budget)
}

// due is when the work wants attention again, if r says so.
func (r *Record) due() time.Time { return r.At.UTC().Add(r.Wait) }

// encoding is the version of the layout hashed by Sum. It changes when a field is added.
const encoding = 1

// Sum computes the record's hash as the successor of prev in the chain of id. The layout is a
// format: version, then every field in a fixed order, integers as 8 bytes big endian, texts with
// their length before them, bodies by their own SHA-256 so that retention can erase them later.
func (r *Record) Sum(id saga.ID, prev Hash) Hash {
	b := make([]byte, 0, 512)
	num := func(n int64) { b = binary.BigEndian.AppendUint64(b, uint64(n)) }
	text := func(s string) { num(int64(len(s))); b = append(b, s...) }
	body := func(m json.RawMessage) {
		if len(m) == 0 {
			num(0)
			return
		}
		sum := sha256.Sum256(m)
		num(int64(len(sum)))
		b = append(b, sum[:]...)
	}
	num(encoding)
	text(id.Saga)
	text(id.Work)
	num(r.Seq)
	b = append(b, prev[:]...)
	num(int64(r.Session))
	text(string(r.Kind))
	num(int64(r.Version))
	text(r.Revision)
	num(r.Nonce)
	text(r.Step)
	text(string(r.Direction))
	num(int64(r.Attempt))
	text(r.ExternalID)
	body(r.Body)
	num(flag(r.BodyDropped))
	text(string(r.Class))
	text(r.Error)
	num(int64(len(r.Signals)))
	for _, s := range r.Signals {
		num(s)
	}
	text(string(r.Status))
	text(string(r.Reason))
	num(int64(r.Wait))
	num(flag(r.Dispatch != nil))
	if a := r.Dispatch; a != nil {
		text(a.Step)
		text(string(a.Direction))
		num(int64(a.Attempt))
		text(a.Key)
		num(int64(a.Reissue))
		num(int64(a.Budget))
	}
	body(r.Snapshot)
	sum := sha256.Sum256(b)
	return Hash(sum[:HashSize])
}

// Seal makes r the successor of (seq, prev) written by session, and fills in its hash.
func (r *Record) Seal(id saga.ID, seq int64, prev Hash, session Token) {
	r.Seq, r.Session = seq+1, session
	r.Hash = r.Sum(id, prev)
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
