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
// that has returned. By a token it is findable with the record that arms its request, see [Entry].
type Mail interface {
	// Await makes waits findable. One that is there already stays as it is. What cannot be stored matches [ErrInvalid].
	Await(ctx context.Context, waits []Wait) error

	// Waits returns what was made findable under a name and a key, oldest first. It may be over: the work's chain tells.
	Waits(ctx context.Context, name, key string) ([]Wait, error)

	// Unwait removes waits. One that is not there is no error.
	Unwait(ctx context.Context, waits []Wait) error

	// Keep stores a message for as long as keep says, by the ledger's clock, and forgets a few whose time is over. One that
	// has the name and the id of one that is stored changes nothing, and [Kept] tells of that one.
	Keep(ctx context.Context, m program.Message, keep time.Duration) (Kept, error)

	// Messages returns those under a name and a key that are stored and not used in a saga, oldest first.
	Messages(ctx context.Context, name, key, saga string) ([]program.Message, error)

	// Use notes that a wait uses a message, and reports whether it does: in each saga one wait uses a message, the first that says so.
	// That it says so again changes nothing. A message whose time is over is not there to be used by others.
	Use(ctx context.Context, name, id string, by Wait) (bool, error)

	// Uses returns the waits that use a message, in the order of saga.
	Uses(ctx context.Context, name, id string) ([]Wait, error)

	// Shared returns a few of the names and keys by which several works of a saga wait at this time.
	Shared(ctx context.Context) ([]Shared, error)
}

// Wait is a step of a work that waits for an answer, and by what it is found.
type Wait struct {
	Name    string // of the message; empty: by a callback's token
	Key     string // of the message, or the digest of the token
	ID      saga.ID
	Step    string
	StepKey string // of the request that carried the token; by a message, of the wait itself: no two revisions have one
	Ended   bool   // read only: the work has ended
}

// Same reports whether two are of one row.
func (w Wait) Same(o Wait) bool {
	w.Ended, o.Ended = false, false
	return w == o
}

// Shared is by what several works of one saga wait: a message for one of them reaches the one that has waited for longest.
type Shared struct {
	Saga string
	Name string
	Key  string
}

// MaxShared is how many of them are told.
const MaxShared = 10

// Kept is what is stored of a message.
type Kept struct {
	At    time.Time // when it came first
	Other bool      // what is stored under its id has another key or another body
	Again bool      // it is stored already
}
