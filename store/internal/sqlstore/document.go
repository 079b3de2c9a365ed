package sqlstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// The document of a record is everything that neither chains, schedules nor finds it, as short
// JSON: a record is written five times in the life of an instance, and a hundred bytes are a third
// of what it costs. Names are short, what is empty is left out, and so is what goes without saying:
//
//	k     the kind                              rev   the source object's revision
//	st    the status; absent: running           ver   the definition's version
//	r     the reason                            nonce of a start, as text: a JSON number has 53 bits
//	s     the step                              sig   the signals it consumes
//	d     its direction; absent: forward        w     the wait, in milliseconds
//	n     its attempt; absent: 1                x     the body was dropped
//	c     the error's class                     on    with a snapshot: the revision that it is at
//	e     the error                             u     until when, in milliseconds since 1970
//	                                            lim   how long the run has, in milliseconds
//	note  what the machine has to say that is no error
//	by    who said what it follows
//	why   in that actor's words
//	cause of a start                            tags  of a start: name=value
//	idn   hash of what makes two starts the same, where that is not the whole input
//	gone  with what was erased: what stands in the hash for it, t the texts, b the body, s the snapshot
//	a     what it arms: s, d, n as above, re the reissue, b the budget in milliseconds, k the key
//
// A step's direction and attempt are absent where there is no step, too. A key is there only when
// it is not the one that derives from the work, the revision that it is at, the step, its direction
// and the reissue.
//
//	v     the version of this layout; absent: 1
//	h     the version of the layout that the record's hash covers; absent: 1
//
// A program that meets another version of either refuses the record; a new layout raises them, so
// none is misread.

// Document writes the document of e behind b.
func Document(b []byte, e *ledger.Entry) []byte {
	r := &e.Record
	d := document{append(b, '{')}
	d.text("k", string(r.Kind))
	d.unless("st", string(r.Status), string(saga.Running))
	d.text("r", string(r.Reason))
	d.effort(r.Step, r.Direction, r.Attempt, r.Step != "")
	d.text("c", string(r.ErrorClass))
	d.text("e", r.Error)
	d.text("note", r.Note)
	d.text("by", r.Actor)
	d.text("why", r.Why)
	d.text("cause", r.Cause)
	if len(r.Tags) > 0 {
		d.key("tags")
		q, _ := json.Marshal(r.Tags) //nolint:errchkjson // texts always encode
		d.b = append(d.b, q...)
	}
	d.text("idn", r.Identity)
	d.text("rev", r.Revision)
	d.number("ver", int64(r.Version))
	if r.Nonce != 0 {
		d.key("nonce")
		d.b = append(strconv.AppendInt(append(d.b, '"'), r.Nonce, 10), '"')
	}
	if len(r.Signals) > 0 {
		d.numbers("sig", r.Signals)
	}
	d.number("w", r.Wait.Milliseconds())
	if !r.Until.IsZero() {
		d.number("u", r.Until.UnixMilli())
	}
	d.number("lim", r.Limit.Milliseconds())
	if r.BodyDropped {
		d.key("x")
		d.b = append(d.b, "true"...)
	}
	if len(r.Snapshot) > 0 {
		d.text("on", revisionAt(r, e.Revision))
	}
	if a := r.Dispatch; a != nil {
		d.key("a")
		d.b = append(d.b, '{')
		d.effort(a.Step, a.Direction, a.Attempt, true)
		d.number("re", int64(a.Reissue))
		d.number("b", a.Budget.Milliseconds())
		d.text("se", a.SecretID)
		d.unless("k", a.Key, stepKey(e.ID, revisionAt(r, e.Revision), a))
		d.b = append(d.b, '}')
	}
	if r.Digests != (machine.Erased{}) {
		d.key("gone")
		d.b = append(d.b, '{')
		d.hash("t", r.Digests.Texts)
		d.hash("b", r.Digests.Body)
		d.hash("s", r.Digests.Snapshot)
		d.b = append(d.b, '}')
	}
	return append(d.b, '}')
}

// revisionAt is what the work is at once r is stored, when it is told elsewhere to be at known.
func revisionAt(r *machine.Record, known string) string {
	if r.Seq == 1 || r.Kind == machine.KindRevised {
		return r.Revision
	}
	return known
}

func stepKey(id saga.ID, revision string, a *machine.Dispatch) string {
	return machine.StepKey(machine.RootKey(id.Saga, id.Work, revision), a.Step, a.Direction, a.Reissue)
}

// document is JSON in the making.
type document struct{ b []byte }

func (d *document) key(name string) {
	if d.b[len(d.b)-1] != '{' {
		d.b = append(d.b, ',')
	}
	d.b = append(append(append(d.b, '"'), name...), '"', ':')
}

// effort is a step with its direction and attempt.
func (d *document) effort(step string, dir saga.Direction, attempt int, there bool) {
	usual, first := saga.Forward, 1
	if !there {
		usual, first = "", 0
	}
	d.text("s", step)
	d.unless("d", string(dir), string(usual))
	if attempt != first {
		d.key("n")
		d.b = strconv.AppendInt(d.b, int64(attempt), 10)
	}
}

func (d *document) number(name string, n int64) {
	if n != 0 {
		d.key(name)
		d.b = strconv.AppendInt(d.b, n, 10)
	}
}

func (d *document) numbers(name string, ns []int64) {
	d.key(name)
	d.b = Numbers(d.b, ns)
}

// Numbers writes a JSON list behind b.
func Numbers(b []byte, ns []int64) []byte {
	b = append(b, '[')
	for i, n := range ns {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return append(b, ']')
}

func (d *document) hash(name string, h machine.Hash) {
	if h != (machine.Hash{}) {
		d.text(name, h.String())
	}
}

func (d *document) text(name, s string) { d.unless(name, s, "") }

// unless writes a text that is not the usual one.
func (d *document) unless(name, s, usual string) {
	if s == usual {
		return
	}
	d.key(name)
	if plain(s) {
		d.b = append(append(append(d.b, '"'), s...), '"')
		return
	}
	q, _ := json.Marshal(s) //nolint:errchkjson // a string always encodes
	d.b = append(d.b, q...)
}

// plain reports whether s is the same in JSON.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// stored is a document as it is read.
type stored struct {
	layout
	storedEffort

	Kind   machine.Kind `json:"k"`
	Status *saga.Status `json:"st"`
	Reason saga.Reason  `json:"r"`
	Class  saga.Class   `json:"c"`
	Error  string       `json:"e"`
	Note   string       `json:"note"`
	Actor  string       `json:"by"`
	Why    string       `json:"why"`
	Cause  string       `json:"cause"`
	Tags   []string     `json:"tags"`
	Ident  string       `json:"idn"`
	Gone   struct {
		Texts    machine.Hash `json:"t"`
		Body     machine.Hash `json:"b"`
		Snapshot machine.Hash `json:"s"`
	} `json:"gone"`
	Revision string         `json:"rev"`
	Defined  int            `json:"ver"`
	Nonce    int64          `json:"nonce,string"`
	Signals  []int64        `json:"sig"` // numbers within the instance, from 1: small, so no texts
	Wait     int64          `json:"w"`
	Until    int64          `json:"u"`
	Limit    int64          `json:"lim"`
	Dropped  bool           `json:"x"`
	On       string         `json:"on"`
	Arm      *storedAttempt `json:"a"`
}

type layout struct {
	Version *int `json:"v"`
	Hash    *int `json:"h"`
}

type storedEffort struct {
	Step      string          `json:"s"`
	Direction *saga.Direction `json:"d"`
	Attempt   *int            `json:"n"`
}

type storedAttempt struct {
	storedEffort

	Reissue int     `json:"re"`
	Budget  int64   `json:"b"`
	Key     *string `json:"k"`
	Secret  string  `json:"se"`
}

var errNewerDocument = fmt.Errorf("%w: it was written by a newer program; upgrade this one", ledger.ErrSchema)

// reading decodes the records of one chain, in its order: a key derives from what came before.
type reading struct {
	db       *Dialect
	id       saga.ID
	revision string // which the chain is at
	lost     error  // why something cannot be opened of what has not ended
}

// record completes r, which has what the columns say, with its document.
func (c *reading) record(r *machine.Record, doc string) error {
	var d stored
	dec := json.NewDecoder(bytes.NewReader([]byte(doc)))
	dec.DisallowUnknownFields()
	err := dec.Decode(&d)
	if err != nil { // a newer layout has other fields
		_ = json.Unmarshal([]byte(doc), &d.layout) // when that fails the first error counts
	}
	switch {
	case d.Version != nil && *d.Version != 1:
		return fmt.Errorf("its document has version %d, this program knows 1: %w", *d.Version, errNewerDocument)
	case d.Hash != nil && *d.Hash != 1:
		return fmt.Errorf("its hash has encoding %d, this program knows 1: %w", *d.Hash, errNewerDocument)
	case err != nil:
		return fmt.Errorf("%w: its document %.200q: %w", ledger.ErrDamaged, doc, err)
	}
	r.Kind, r.Reason, r.ErrorClass, r.Error, r.Revision = d.Kind, d.Reason, d.Class, d.Error, d.Revision
	r.Note, r.Actor, r.Why, r.Cause, r.Tags, r.Identity, r.Digests = d.Note, d.Actor, d.Why, d.Cause, d.Tags, d.Ident, machine.Erased(d.Gone)
	r.Version, r.Nonce, r.Signals, r.BodyDropped = d.Defined, d.Nonce, d.Signals, d.Dropped
	r.Wait = time.Duration(d.Wait) * time.Millisecond
	r.Limit = time.Duration(d.Limit) * time.Millisecond
	if d.Until != 0 {
		r.Until = time.UnixMilli(d.Until).UTC()
	}
	r.Status = saga.Running
	if d.Status != nil {
		r.Status = *d.Status
	}
	r.Step = d.Step
	r.Direction, r.Attempt = d.effort(d.Step != "")
	if len(r.Snapshot) > 0 {
		c.revision = d.On
	}
	c.revision = revisionAt(r, c.revision)
	if a := d.Arm; a != nil {
		r.Dispatch = &machine.Dispatch{Step: a.Step, Reissue: a.Reissue, Budget: time.Duration(a.Budget) * time.Millisecond, SecretID: a.Secret}
		r.Dispatch.Direction, r.Dispatch.Attempt = a.effort(true)
		if a.Key != nil {
			r.Dispatch.Key = *a.Key
		} else {
			r.Dispatch.Key = stepKey(c.id, c.revision, r.Dispatch)
		}
	}
	return nil
}

func (e *storedEffort) effort(there bool) (dir saga.Direction, attempt int) {
	if there {
		dir, attempt = saga.Forward, 1
	}
	if e.Direction != nil {
		dir = *e.Direction
	}
	if e.Attempt != nil {
		attempt = *e.Attempt
	}
	return dir, attempt
}
