package machine

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/program"
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
	KindOther      Kind = "other"             // a settled lookup found it, and not as it should be: the next attempt changes it, or a person decides
	KindNotFound   Kind = "not-found"         // a settled lookup found nothing
	KindUnclear    Kind = "unclear"           // a lookup could not tell
	KindSeveral    Kind = "several"           // a lookup found more than one: a duplicate at the destination
	KindResolved   Kind = "resolved"          // a person's resolution on a step in review
	KindCancelled  Kind = "cancelled"         // a cancel was accepted; the work turns to compensation
	KindNoted      Kind = "noted"             // nothing was learned of a step: a signal that changes nothing, a policy used up, the end
	KindParked     Kind = "sent-to-review"    // put aside for a person
	KindPaused     Kind = "paused"            // a person holds the work where it is, or its source, at a Revision
	KindResumed    Kind = "resumed"           // taken up again where it was parked
	KindRetried    Kind = "retried"           // a person has the step at issue tried again, under its key
	KindApplies    Kind = "applies"           // the condition of the step says that it is done in this run
	KindLeftOut    Kind = "left-out"          // it says that the step is not
	KindSkipped    Kind = "skipped"           // a person says that the step did not happen and will not; Body is the result later steps find
	KindHeard      Kind = "revision-received" // the source has a newer version; it waits for a step boundary. Body is its input, empty when the source cancelled
	KindRevised    Kind = "revised"           // the work begins again for a newer version of its source object
	KindForgotten  Kind = "forgotten"         // the database went back: what the work armed since is not known
	KindWaiting    Kind = "wait-began"        // a step that only waits was reached; it waits until Until
	KindOver       Kind = "wait-over"         // its time has come, or a person ended it; without a step: of a start that was for later
	KindOverdue    Kind = "deadline-passed"   // the work was not at its end in time
	KindAnswered   Kind = "answered"          // the answer that a step waited for came; Body is the result
	KindAnswerKept Kind = "answer-kept"       // it came before its request was answered; Body is the message, read when that is
	KindAnsweredNo Kind = "answered-no"       // it came, and says that what was waited for has failed
	KindUnanswered Kind = "unanswered"        // it has not come in time
	KindExtended   Kind = "wait-extended"     // a person has a step wait for its answer until Until
	KindOpened     Kind = "approval-began"    // people have to decide; Body is what they are shown, and Until the end
	KindVoted      Kind = "voted"             // one of them approved, and more are needed; Body is the vote
	KindApproved   Kind = "approved"          // enough have, or no decision was needed; Body has the votes
	KindRejected   Kind = "rejected"          // one of them rejected it; Body is the vote
	KindRemembered Kind = "remembered"        // its records have gone: Body is what is left, see [Remains]. No ledger stores it; it is made where it is read
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
	Seq     int64     `json:"seq"`            // 1 for the first record of a work
	Hash    Hash      `json:"hash"`           // over everything below but At, and the predecessor's hash
	Session Token     `json:"session,string"` // the writer
	At      time.Time `json:"at"`             // the database's clock when the record was stored; not hashed

	Kind        Kind            `json:"recordKind"`
	Version     int             `json:"version,omitempty"`      // KindStarted, KindHeard, KindRevised: the definition's version
	Revision    string          `json:"revision,omitempty"`     // the version of the source object that the record speaks of, if it speaks of one
	Nonce       int64           `json:"nonce,string,omitempty"` // KindStarted: random; tells two equal starts by one session apart
	Step        string          `json:"step,omitempty"`         // which step was learned about
	Direction   saga.Direction  `json:"direction,omitempty"`    // of that step
	Attempt     int             `json:"attempt,omitempty"`      // of that step in that direction, from 1
	ExternalID  string          `json:"externalId,omitempty"`   // what the destination calls the thing we made
	Body        json.RawMessage `json:"body,omitempty"`
	BodyDropped bool            `json:"bodyDropped,omitempty"` // the body was too large or not serialisable and is not kept
	ErrorClass  saga.Class      `json:"errorClass,omitempty"`  // of the error
	Error       string          `json:"error,omitempty"`       // the error's text; never a body
	Note        string          `json:"note,omitempty"`        // what the machine has to say that is no error
	Actor       string          `json:"actor,omitempty"`       // who said what the record follows
	Why         string          `json:"why,omitempty"`         // why, in the actor's words
	Cause       string          `json:"cause,omitempty"`       // KindStarted: what caused the start, in the starter's words
	Tags        []string        `json:"tags,omitempty"`        // KindStarted: what it is found by, name=value, sorted; KindRemembered: whose data it holds
	Identity    string          `json:"identity,omitempty"`    // KindStarted, KindHeard, KindRevised: hash of what makes two starts the same, where that is not the whole input in Body
	Signals     []int64         `json:"signals,omitempty"`

	Status saga.Status   `json:"status"`                 // where the work stands after this record
	Reason saga.Reason   `json:"reason,omitempty"`       // why, when Status is review
	Wait   time.Duration `json:"wait,string,omitempty"`  // the work is due again at At+Wait; 0 while it is being worked on
	Until  time.Time     `json:"until,omitzero"`         // KindWaiting: when the wait is over; KindStarted: the start is for later, and begins then. Whole milliseconds. KindRemembered: when it was started
	Limit  time.Duration `json:"limit,string,omitempty"` // KindStarted, KindRevised: the run that begins has so long, from when it begins; 0: as long as it takes

	Dispatch *Dispatch       `json:"dispatch,omitempty"` // the attempt this record arms, if any
	Snapshot json.RawMessage `json:"snapshot,omitempty"` // the folded state before this record, so that loading can begin here

	Digests Erased `json:"digests,omitzero"` // what stands in the hash for what was erased
}

// Salt is random, and an instance's own. What may hold a person's data enters the hashes of its
// records with it, so that nothing can be guessed from them once the salt is gone.
type Salt [16]byte

// Erased are the salted digests of what was erased of a record. Zero: it is there, or never was.
type Erased struct {
	Texts    Hash `json:"texts,omitzero"` // external id, error, note, actor, why, cause, tags
	Body     Hash `json:"body,omitzero"`  // of the record's Body as it was; what it has now is left of it, see [Record.Reduce]
	Snapshot Hash `json:"snapshot,omitzero"`
}

// Dispatch is the intent of one attempt, durable before anything is sent.
type Dispatch struct {
	Step      string         `json:"step"`
	Direction saga.Direction `json:"direction"`
	Attempt   int            `json:"attempt"`
	Key       string         `json:"key"`                // the same for every attempt of this step, direction and reissue
	Reissue   int            `json:"reissue"`            // how often a new key was allowed
	Budget    time.Duration  `json:"budget,string"`      // the attempt's deadline is the record's At + Budget
	SecretID  string         `json:"secretId,omitempty"` // the id of the secret that its callback token is made with; empty: it has none
}

// Said is what r has to say to a person: the error, or the note, who said so and why.
func (r *Record) Said() string {
	words := r.Error
	if r.Note != "" {
		if words != "" {
			words += "; "
		}
		words += r.Note
	}
	switch {
	case r.Actor != "" && words != "":
		words += ", says " + r.Actor
	case r.Actor != "":
		words = "says " + r.Actor
	}
	if r.Why != "" {
		words += ": " + r.Why
	}
	return words
}

// Names reports whether r, which consumed s, names the same actor and reason, or none: nothing of s was
// recorded, or it was erased. The machine consumes one signal at a time; of several r names none.
func (r *Record) Names(s *Signal) bool {
	said := Record{Actor: s.Actor, Why: s.Reason}
	said.clean()
	return r.Actor == said.Actor && r.Why == said.Why || r.Actor == "" && r.Why == "" || len(r.Signals) > 1
}

// clean bounds the texts of r, and makes them ones that every ledger takes.
func (r *Record) clean() {
	for _, s := range []*string{&r.Error, &r.Note, &r.Actor, &r.Why, &r.Cause} {
		*s = program.Clean(*s, maxText)
	}
}

// Deadline is when nothing of the armed attempt may leave or be awaited any more. Zero when r arms
// nothing.
func (r *Record) Deadline() time.Time {
	if r.Dispatch == nil {
		return time.Time{}
	}
	return r.At.UTC().Add(r.Dispatch.Budget)
}

// until is Until in milliseconds since 1970; 0 when there is none.
func (r *Record) until() int64 {
	if r.Until.IsZero() {
		return 0
	}
	return r.Until.UnixMilli()
}

// EndsBy is when the run that r begins has to be at its end; zero: at no time.
func (r *Record) EndsBy() time.Time {
	if r.Limit == 0 {
		return time.Time{}
	}
	return later(r.At, r.Until).UTC().Add(r.Limit)
}

// Due is when the work wants attention again, if r says so: no later than the wait that r begins is over,
// however long it took to store r.
func (r *Record) Due() time.Time {
	due := r.At.UTC().Add(r.Wait)
	if over := later(r.At, r.Until).UTC(); !r.Until.IsZero() && over.Before(due) {
		return over
	}
	return due
}

// encoding is the version of the layout hashed by Sum. It changes when a field is added.
const encoding = 1

// layout is what a hash covers: integers as 8 bytes big endian, texts with their length before them. What is appended is returned, so that
// what it begins with stays on the stack.
type layout []byte

func (b layout) num(n int64) layout   { return binary.BigEndian.AppendUint64(b, uint64(n)) }
func (b layout) text(s string) layout { return append(b.num(int64(len(s))), s...) }

func (b layout) hash() Hash {
	sum := sha256.Sum256(b)
	return Hash(sum[:HashSize])
}

// Sum computes the record's hash as the successor of prev in the chain of id, whose salt is given.
// The layout is a format: version, then every field in a fixed order. What may hold a person's data
// is in it by its salted digest, so that it can be erased later, and the salt with it.
func (r *Record) Sum(id saga.ID, salt Salt, prev Hash) Hash {
	d := r.digests(salt)
	b := make(layout, 0, 768).num(encoding).text(id.Saga).text(id.Work).num(r.Seq)
	b = append(b, prev[:]...).num(int64(r.Session)).text(string(r.Kind)).num(int64(r.Version)).text(r.Revision).num(r.Nonce)
	b = b.text(r.Step).text(string(r.Direction)).num(int64(r.Attempt)).num(flag(r.BodyDropped)).text(string(r.ErrorClass))
	b = b.num(int64(len(r.Signals)))
	for _, s := range r.Signals {
		b = b.num(s)
	}
	b = b.text(string(r.Status)).text(string(r.Reason)).num(int64(r.Wait)).num(r.until()).num(int64(r.Limit)).num(flag(r.Dispatch != nil))
	if a := r.Dispatch; a != nil {
		b = b.text(a.Step).text(string(a.Direction)).num(int64(a.Attempt)).text(a.Key).num(int64(a.Reissue)).num(int64(a.Budget)).text(a.SecretID)
	}
	b = append(append(append(b, d.Texts[:]...), d.Body[:]...), d.Snapshot[:]...)
	if r.Identity != "" {
		b = b.text(r.Identity)
	}
	return b.hash()
}

// digests are what stands in the hash for what may hold a person's data: as they are on record where it
// was erased, zero where there is nothing.
func (r *Record) digests(salt Salt) Erased {
	d := r.bodyDigests(salt)
	if r.ExternalID != "" || r.Error != "" || r.Note != "" || r.Actor != "" || r.Why != "" || r.Cause != "" || len(r.Tags) > 0 {
		b := append(make(layout, 0, 256), salt[:]...)
		for _, s := range [...]string{r.ExternalID, r.Error, r.Note, r.Actor, r.Why, r.Cause} {
			b = b.text(s)
		}
		for _, s := range r.Tags {
			b = b.text(s)
		}
		d.Texts = b.hash()
	}
	return d
}

// bodyDigests are those of the body and the snapshot.
func (r *Record) bodyDigests(salt Salt) Erased {
	d := r.Digests
	b := make(layout, 0, 512)                  // one for both: they are computed for every record
	if len(r.Body) > 0 && d.Body == (Hash{}) { // else Body is what is left of it
		b = append(append(b, salt[:]...), r.Body...)
		d.Body = b.hash()
	}
	if len(r.Snapshot) > 0 {
		b = append(append(b[:0], salt[:]...), r.Snapshot...)
		d.Snapshot = b.hash()
	}
	return d
}

// Erase takes everything out of r that may hold a person's data, and leaves its hash as it is.
func (r *Record) Erase(salt Salt) {
	r.Digests = r.digests(salt)
	r.ExternalID, r.Error, r.Note, r.Actor, r.Why, r.Cause, r.Identity, r.Tags, r.Body, r.Snapshot = "", "", "", "", "", "", "", nil, nil, nil
}

// Seal makes r the successor of (seq, prev) written by session, and fills in its hash.
func (r *Record) Seal(id saga.ID, salt Salt, seq int64, prev Hash, session Token) {
	r.Seq, r.Session = seq+1, session
	r.Hash = r.Sum(id, salt, prev)
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// ofLookup reports whether a record is the answer of a lookup.
func (k Kind) ofLookup() bool {
	return k == KindFound || k == KindUnfinished || k == KindOther || k == KindNotFound || k == KindUnclear || k == KindSeveral
}
