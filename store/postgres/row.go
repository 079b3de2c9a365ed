package postgres

import (
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
	if sqlstore.Projects(p.Entry) {
		row = sqlstore.AppendValues(row, p.Entry)
	} else {
		row = row[:len(followColumns)-2] // what its instance must show is NULL
	}
	var signals any
	if len(p.Record.Signals) > 0 {
		signals = string(sqlstore.Numbers(nil, p.Record.Signals))
	}
	return append(row, signals, p.waits())
}

// waits are the list of them, as [waitsFrom] takes it apart.
func (p *pending) waits() any {
	if len(p.Waits) == 0 {
		return nil
	}
	return sqlstore.WaitList(p.Waits)
}

// startRow is the row of a first record, in the order of [startColumns], but for its reference. hidden is what would be left of
// the work's name.
func (p *pending) startRow(hidden string) []any {
	row := make([]any, 0, len(startColumns))
	row = append(row, nil, p.ID.Saga, p.ID.Work, hidden, p.dispatches(), p.Salt[:])
	return append(sqlstore.AppendValues(p.record(row), sqlstore.Scheduled(p.Entry)), p.waits())
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
		sqlstore.Null(string(p.Body)), sqlstore.Null(string(p.Snapshot)))
}
