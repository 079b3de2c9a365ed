package postgres

import (
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/store/internal/sqlstore"
)

// storedColumns is how many of [followColumns] a record consists of; those behind them are its
// instance's.
const storedColumns = 10

// followRow is the row of a record behind another, in the order of [followColumns].
func (p *pending) followRow() []any {
	row := make([]any, 0, len(followColumns))
	row = append(row, p.Number, p.Prev[:], p.dispatches(), p.Record.Seq)
	row = p.record(row)
	if !sqlstore.Projects(p.Entry) {
		return row[:len(followColumns)] // NULL
	}
	row = p.instance(row, p.Record.Kind == machine.KindRevised)
	if n := len(p.Record.Signals); n > 0 {
		return append(row, int64(n), string(sqlstore.Numbers(nil, p.Record.Signals)))
	}
	return append(row, nil, nil)
}

// startRow is the row of a first record, in the order of [startColumns], but for its reference.
func (p *pending) startRow() []any {
	row := make([]any, 0, len(startColumns))
	row = append(row, nil, p.ID.Saga, p.ID.Work, p.dispatches(), p.Salt[:])
	e := *p.Entry
	if e.Schedule == nil { // a new instance has no schedule to keep
		e.Schedule = &ledger.Schedule{}
	}
	return (&pending{Entry: &e}).instance(p.record(row), true)
}

func (p *pending) dispatches() any {
	if p.Record.Dispatch == nil {
		return nil
	}
	return true
}

// record appends session to snapshot.
func (p *pending) record(row []any) []any {
	r := &p.Record
	return append(row, int64(r.Session), r.Hash[:], sqlstore.Null(r.ExternalID), string(sqlstore.Document(make([]byte, 0, 256), p.Entry)),
		sqlstore.Null(string(r.Body)), sqlstore.Null(string(r.Snapshot)))
}

// instance appends held to unconfirmed. began: it begins with a revision of its source object.
func (p *pending) instance(row []any, began bool) []any {
	r := &p.Record
	var held, class, wait, revision, version, unconfirmed any
	if s := p.Schedule; s != nil {
		held, class = s.Hold && r.Status.Live(), int64(s.Class)
	}
	if r.Wait > 0 {
		wait = r.Wait.Milliseconds()
	}
	if began {
		revision, version = sqlstore.Null(r.Revision), int64(r.Version)
	}
	if ledger.Unconfirmed(r) {
		unconfirmed = true
	}
	return append(row, held, class, string(r.Status), sqlstore.Null(string(r.Reason)), wait, revision, version,
		sqlstore.Null(ledger.AtIssue(r, "")), unconfirmed)
}
