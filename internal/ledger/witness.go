package ledger

import (
	"context"
	"time"

	"github.com/amends-dev/amends/saga"
)

// Witness keeps, outside of a ledger's database, how far the ledger was seen to have come. A database
// that is put back from a backup does not know what it has forgotten; its witness does.
type Witness interface {
	// Read returns what was written last of a ledger, nil when nothing was.
	Read(ctx context.Context, ledger string) (mark []byte, err error)
	// Write keeps mark in the place of what was there before. A mark is under a kilobyte of text.
	Write(ctx context.Context, ledger string, mark []byte) error
}

// What a session says of its witness. Anything else is why it has none.
const (
	WitnessKept = "kept"      // the ledger was compared with it
	WitnessNew  = "new"       // it knew nothing of the ledger, which others had worked on before
	WitnessTemp = "temporary" // it has none: the ledger is in a folder for temporary files
)

// SessionForgone stands for the database of sessions that were opened before a restore.
const SessionForgone = "restored"

// Recovery is what a person says of a database that may not be what it was.
type Recovery struct {
	// NothingLost: it is another database, and has everything. Else it was restored, and has forgotten
	// what was done since.
	NothingLost bool
	DryRun      bool // change nothing
	By          saga.Actor
}

// Recovered says what a recovery is about.
type Recovered struct {
	Heard time.Time // when a process was alive the last time, as far as the ledger knows; zero: never
	Moved int64     // sessions that count as opened on another database than this one
	// Works are those that have not ended and do not go back, by definition. Of each the steps that are
	// not done count as in doubt once it was restored.
	Works []Backlog
}

// Recoverer is implemented by ledgers that can be put back behind the back of their processes.
type Recoverer interface {
	// Recover stores what a person says, and who it was. It is refused while a process runs
	// ([ErrLocked]), and where a witness knows more than the database of which nothing is said to be lost
	// ([ErrBehind]).
	Recover(ctx context.Context, r Recovery) (Recovered, error)
}
