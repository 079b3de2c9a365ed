package claims

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/postgres"
)

// Ours is the saga whose instances are claimed.
var Ours = ledger.Version{Saga: "order-to-invoice", Version: 1}

// chunk is how many instances one append starts.
const chunk = 512

// Start puts n instances of a definition into the ledger of a database, due now.
func Start(ctx context.Context, address string, v ledger.Version, n int) (err error) {
	l, err := postgres.Open(ctx, address, &postgres.Options{Migrate: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for first := 0; first < n; first += chunk {
		var entries []ledger.Entry
		for i := first; i < min(first+chunk, n); i++ {
			id := saga.ID{Saga: v.Saga, Work: fmt.Sprintf("shop:order:%d-%08d", v.Version, i)}
			r := machine.Record{Kind: machine.KindStarted, Version: v.Version, Status: saga.Running, Body: []byte(`{"total":4200,"currency":"EUR"}`)}
			r.Seal(id, machine.Salt{}, 0, machine.Hash{}, 0)
			entries = append(entries, ledger.Entry{ID: id, Record: r, Schedule: &ledger.Schedule{Class: ledger.ClassBegun}})
		}
		answers, err := l.Append(ctx, 0, entries)
		if err != nil {
			return err
		}
		for _, a := range answers {
			if a.Result != ledger.Appended {
				return fmt.Errorf("start: %s: %w", a.Result, a.Err)
			}
		}
	}
	return nil
}

// Amends is the real ledger on a database. Each claimer is a store of its own, as in another
// process.
func Amends(address string) Source { return amends{address} }

type amends struct{ address string }

// Claimer implements [Source].
func (a amends) Claimer(ctx context.Context) (Claimer, error) {
	return a.open(ctx, []ledger.Version{Ours})
}

func (a amends) open(ctx context.Context, known []ledger.Version) (_ *process, err error) {
	p := &process{known: known}
	if p.db, err = postgres.Open(ctx, a.address, nil); err != nil {
		return nil, err
	}
	lease, err := p.db.OpenSession(ctx, time.Hour, "bench", known)
	if err != nil {
		return nil, errors.Join(err, p.db.Close())
	}
	p.token = lease.Token
	return p, nil
}

// Stop implements [Source]: it holds the locks of a claim that has not committed. The store makes
// no such thing, because its claim is one statement.
func (a amends) Stop(ctx context.Context) (func() error, error) {
	db, err := sqlx.ConnectContext(ctx, "postgres", a.address)
	if err != nil {
		return nil, err
	}
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(`SELECT FROM amends_instances WHERE session IS NULL AND due_at IS NOT NULL AND finished_at IS NULL
		ORDER BY saga, version, class, due_at LIMIT %d FOR NO KEY UPDATE`, Limit)); err != nil {
		return nil, errors.Join(err, tx.Rollback(), db.Close())
	}
	return func() error { return errors.Join(tx.Rollback(), db.Close()) }, nil
}

// process is a process that claims from amends' ledger.
type process struct {
	db    *postgres.DB
	token machine.Token
	known []ledger.Version
}

// Claim implements [Claimer].
func (p *process) Claim(ctx context.Context) ([]int64, error) {
	got, err := p.db.Claim(ctx, p.token, ledger.Claim{Limit: Limit, Fresh: Limit / 10, Known: p.known})
	if err != nil {
		return nil, err
	}
	numbers := make([]int64, len(got.Instances))
	for i := range got.Instances {
		numbers[i] = got.Instances[i].Number
	}
	return numbers, nil
}

// Close implements [Claimer].
func (p *process) Close() error { return p.db.Close() }

// Look has a process of fifty sagas in two versions look n times for instances that are due. There
// must be none.
func Look(ctx context.Context, address string, n int) (err error) {
	var known []ledger.Version
	for i := range 50 {
		known = append(known, ledger.Version{Saga: fmt.Sprint("saga-", i), Version: 1}, ledger.Version{Saga: fmt.Sprint("saga-", i), Version: 2})
	}
	p, err := amends{address}.open(ctx, known)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	for range n {
		if got, err := p.Claim(ctx); err != nil || len(got) > 0 {
			return errors.Join(err, fmt.Errorf("an empty look found %d instances", len(got)))
		}
	}
	return nil
}

// Unknown is what no claimer knows: another saga, and a version of a known one.
var Unknown = []ledger.Version{{Saga: "another", Version: 1}, {Saga: "saga-7", Version: 3}}
