package sqlstore

import (
	"bytes"
	"errors"

	"github.com/amends-dev/amends/internal/ledger"
)

// Place is what stands in the ledger where an entry was not taken: the record at its number, if
// there is one, and the one before it.
type Place struct {
	Ref      int64
	Own      []byte // hash of the record at the entry's seq; nil: none
	OwnAt    Moment
	Previous []byte // hash of the record before it; nil: none
	Unread   int64  // signals posted to the instance that no record has consumed
}

// Judge says why the entry was not taken. What is there is looked at before the lease, so that
// NoLease means that nothing but the lease is missing. ok is false when nothing speaks against the
// entry any more: another transaction was in the way and is not there now, so it can be tried
// again.
func (p *Place) Judge(e *ledger.Entry, live bool) (a ledger.Answer, ok bool) {
	start := e.Record.Seq == 1
	switch {
	case p.Own != nil && bytes.Equal(p.Own, e.Record.Hash[:]):
		return ledger.Answer{Result: ledger.Mine, At: p.OwnAt.Time(), Number: p.Ref}, true
	case p.Own != nil && start:
		return ledger.Answer{Result: ledger.Exists}, true
	case p.Own != nil:
		return ledger.Answer{Result: ledger.Stale}, true
	case !start && !bytes.Equal(p.Previous, e.Prev[:]):
		return ledger.Answer{Result: ledger.Missing}, true
	case int64(len(e.Record.Signals)) > p.Unread:
		return ledger.Answer{Result: ledger.Invalid, Err: errors.New("it consumes more signals than were posted")}, true
	case e.Record.Dispatch != nil && !live:
		return ledger.Answer{Result: ledger.NoLease}, true
	}
	return ledger.Answer{}, false
}
