package ledger

import (
	"context"
	"time"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// Mail is how what comes from outside meets the works that wait for it. A wait is findable before it is on record, and then
// looks for what has come already; a message is stored, and then looks for what waits. So one of the two finds the
// other, whichever process dies in between, and nothing needs a transaction over both (waits.pml -DMESSAGES): a read sees every write
// that has returned.
type Mail interface {
	// Await makes waits findable. One that is there already stays as it is. What cannot be stored matches [ErrInvalid].
	Await(ctx context.Context, waits []Wait) error

	// Waits returns what was made findable under a name and a key, in the order of saga, work and step. It may be over: the work's chain
	// tells.
	Waits(ctx context.Context, name, key string) ([]Wait, error)

	// Unwait removes waits. One that is not there is no error.
	Unwait(ctx context.Context, waits []Wait) error

	// Keep stores a message for as long as keep says, by the ledger's clock, and forgets a few whose time is over. One that
	// has the name and the id of one that is stored changes nothing, and [Kept] tells of that one.
	Keep(ctx context.Context, m program.Message, keep time.Duration) (Kept, error)

	// Messages returns those under a name and a key that are stored and not delivered, oldest first.
	Messages(ctx context.Context, name, key string) ([]program.Message, error)

	// Delivered notes that a message has reached what waited for it. It is in the history there: its body is forgotten here.
	Delivered(ctx context.Context, name, id string) error
}

// Wait is a step of a work that waits for an answer, and by what it is found.
type Wait struct {
	Name    string // of the message; empty: by a callback's token
	Key     string // of the message, or the digest of the token
	ID      saga.ID
	Step    string
	StepKey string // of the request that carried the token; by a message, of the wait itself: no two revisions have one
}

// Kept is what is stored of a message.
type Kept struct {
	At        time.Time // when it came first
	Delivered bool
	Other     bool // what is stored under its id has another key or another body
}
