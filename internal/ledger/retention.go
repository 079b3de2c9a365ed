package ledger

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// Retention lets go of what is kept of works that have ended, in three steps: bodies and snapshots, then records, then the work itself.
type Retention interface {
	// Reduce lets go of what each reduction says, and answers at its own index whether it did. A work that is not as it was read, has not
	// ended, is in a session's hands, has an unread signal, or is held ([ControlHold]) is left as it is. What is done is done as a whole. An
	// error may have done it: reduce what a new listing shows.
	Reduce(ctx context.Context, all []Reduction) (done []bool, err error)
}

// Eraser is implemented by ledgers in a SQL database: what names a work can be erased, and the work is still known.
type Eraser interface {
	// Hide is what is left of the name of a work, or of a thing that it made, that was erased: a hash under the ledger's secret. It
	// leaves one as it is.
	Hide(name string) string

	// Unname has works that were erased lose their work ids, which their rows have until no transaction is open that may start
	// them and has not seen that they were erased. It waits a few seconds for such, and answers for how many works it waited in vain.
	Unname(ctx context.Context) (waiting int, err error)

	// ForgetWaits removes how callbacks and messages found works of which no records are left, and answers how many that were. Who
	// calls back then is told that the token is not known. It forgets messages that have expired and old answers to requests, too.
	ForgetWaits(ctx context.Context) (int, error)

	// EraseLater marks works that have not ended, so that [ToErase] lists them.
	EraseLater(ctx context.Context, numbers []int64) error
}

// ToErase is the tag of works that are to be erased once they have ended.
const ToErase = "amends:erase=later"

// hiddenPrefix begins what is left of a name.
const hiddenPrefix = "erased-"

// Hidden is [Eraser.Hide] under a secret.
func Hidden(secret []byte, name string) string {
	if name == "" || isHidden(name) {
		return name
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(name))
	return hiddenPrefix + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// isHidden reports whether a name is what is left of one.
func isHidden(name string) bool {
	hash, is := strings.CutPrefix(name, hiddenPrefix)
	b, err := base64.RawURLEncoding.DecodeString(hash)
	return is && err == nil && len(b) == 16
}

// Erased reports whether the work was erased: its id is what is left of one.
func (h *Instance) Erased() bool { return h.Left() == LeftRemains && isHidden(h.ID.Work) }

// Left says what is left of a work.
type Left string

// The states of a work that has ended.
const (
	LeftAll     Left = "all"
	LeftRecords Left = "records" // their bodies and snapshots have gone
	LeftRemains Left = "remains" // a tombstone: all records have gone
)

// BodiesGone is [Instance.Remains] of a work whose bodies have gone.
const BodiesGone = "-"

// Left is what is left of the work.
func (h *Instance) Left() Left {
	switch h.Remains {
	case "":
		return LeftAll
	case BodiesGone:
		return LeftRecords
	default:
		return LeftRemains
	}
}

// Reduction is what a work is to lose.
type Reduction struct {
	Head Instance // as it was read
	Tail int64    // the number of its last record; 0: it has none any more
	To   Left     // [LeftRecords] or [LeftRemains]; empty: the work goes, and all that counts it
	// Records are those that lose something, by [machine.Record.Reduce], with the keys that they arm. Signals are all of the work's that say more than
	// who and why.
	Records []machine.Record
	Signals []machine.Signal
	Tags    []string        // that go with its records, or with its key
	Remains machine.Remains // what is left when its records go
	// As is the name under which it is known from then on, see [Eraser.Hide]: with its records goes, wherever it stands, what names it.
	// Empty: it keeps its name. Only an [Eraser] takes one.
	As string
}

// NowRemains is what the head shows from then on.
func (r *Reduction) NowRemains() string {
	if r.To == LeftRecords {
		return BodiesGone
	}
	b, _ := json.Marshal(r.Remains) //nolint:errchkjson // texts always encode
	return string(b)
}

// Remembered is the one record that is read of a work whose records have gone: it folds to what is left of it.
func Remembered(h *Instance) machine.Record {
	why := "its records have gone by retention"
	if h.Erased() {
		why = "it was erased"
	}
	var left machine.Remains
	_ = json.Unmarshal([]byte(h.Remains), &left) // who folds it is told
	return machine.Record{
		Tags: left.Tags, Seq: 1, At: h.Updated, Until: h.Created, Kind: machine.KindRemembered, Version: h.Version, Revision: h.Revision, Status: h.Status, Body: json.RawMessage(h.Remains),
		Note: why,
	}
}

// HoldName is the name of the control that holds a work.
func HoldName(id saga.ID) string { return id.Saga + " " + id.Work }
