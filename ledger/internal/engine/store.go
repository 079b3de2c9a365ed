package engine

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/ledger"
	"github.com/amends-dev/amends/saga"
)

// Store is everything of a SQL ledger but opening it and appending.
type Store struct {
	db   *Database
	text texts

	identities sync.Map                // saga.Token → the identity of the database its session was opened on
	changed    atomic.Pointer[changed] // nil: as far as is known the database was always this one
}

// texts are the statements in the words of one database.
type texts struct {
	openSession, renewSession, burySession, buryOthers, buryExpired, sessionLives string
	loadHeads, loadRecords, loadSignals, elsewhere                                string
	postSignal, countSignal, addDefinition, countDuplicate                        string
}

// New returns a store on db.
func New(db *Database) *Store {
	return &Store{db: db, text: texts{
		openSession:    db.Text(openSession),
		renewSession:   db.Text(renewSession),
		burySession:    db.Text(burySession),
		buryOthers:     db.Text(buryOthers),
		buryExpired:    db.Text(buryExpired),
		sessionLives:   db.Text(sessionLives),
		loadHeads:      db.Text(loadHeads),
		loadRecords:    db.Text(loadRecords),
		loadSignals:    db.Text(loadSignals),
		elsewhere:      db.Text(elsewhere),
		postSignal:     db.Text(postSignal),
		countSignal:    db.Text(countSignal),
		addDefinition:  db.Text(addDefinition),
		countDuplicate: db.Text(countDuplicate),
	}}
}

// OpenSession begins a lease of ttl under a fresh random token, by the database's clock.
func (s *Store) OpenSession(ctx context.Context, ttl time.Duration, label string) (ledger.Lease, error) {
	lease := ledger.Lease{Token: token(), TTL: ttl}
	err := s.db.Pulse(ctx, func(q Queries) error {
		var err error
		if lease.Database, err = s.db.Identity(ctx, q); err != nil {
			return err
		}
		var at Moment
		row := q.QueryRowxContext(ctx, s.text.openSession, s.db.Clock(), int64(lease.Token), printable(label), ttl.Milliseconds(), lease.Database)
		if err := row.Scan(&at); err != nil {
			return err
		}
		lease.At = at.Time()
		return s.learnChange(ctx, q, lease.Database)
	})
	if err != nil {
		return ledger.Lease{}, s.failed(ctx, err, "open session")
	}
	s.identities.Store(lease.Token, lease.Database)
	return lease, nil
}

// changed says that sessions were opened on other databases than the present one.
type changed struct {
	identity string
	since    time.Time // when the first session was opened on the present one
}

// learnChange asks once per session whether this database is another one than it was.
func (s *Store) learnChange(ctx context.Context, q Queries, identity string) error {
	var first Moment
	if err := q.QueryRowxContext(ctx, since, identity).Scan(&first); err != nil {
		return err
	}
	if at := first.Time(); !at.IsZero() {
		s.changed.Store(&changed{identity: identity, since: at})
	}
	return nil
}

// Renew extends a lease to ttl from now. A dead or expired session is not revived.
func (s *Store) Renew(ctx context.Context, t saga.Token, ttl time.Duration) (ledger.Lease, error) {
	lease := ledger.Lease{Token: t, TTL: ttl}
	err := s.db.Pulse(ctx, func(q Queries) error {
		var err error
		if lease.Database, err = s.db.Identity(ctx, q); err != nil {
			return err
		}
		if opened := OpenedOn(s, t); opened != "" && opened != lease.Database {
			return fmt.Errorf("%w: opened on %s, now it is %s", ledger.ErrDatabaseChanged, opened, lease.Database)
		}
		var at []Moment
		if err := sqlx.SelectContext(ctx, q, &at, s.text.renewSession, s.db.Clock(), int64(t), ttl.Milliseconds()); err != nil {
			return err
		}
		if len(at) == 0 {
			return ledger.ErrSessionDead
		}
		lease.At = at[0].Time()
		return nil
	})
	if err != nil {
		return ledger.Lease{}, s.failed(ctx, err, "renew session %s", t)
	}
	return lease, nil
}

// Bury marks a session dead. Burying a dead session is not an error.
func (s *Store) Bury(ctx context.Context, t saga.Token) error {
	err := s.db.Pulse(ctx, func(q Queries) error {
		_, err := q.ExecContext(ctx, s.text.burySession, s.db.Clock(), int64(t))
		return err
	})
	return s.failed(ctx, err, "bury session %s", t)
}

// BuryOthers marks every session but t dead, for a ledger that can prove that they are. It is not a method, so
// that the ledgers which embed a store do not offer it.
func BuryOthers(ctx context.Context, s *Store, t saga.Token) error {
	err := s.db.Pulse(ctx, func(q Queries) error {
		_, err := q.ExecContext(ctx, s.text.buryOthers, int64(t))
		return err
	})
	return s.failed(ctx, err, "bury the sessions before %s", t)
}

// OpenedOn returns the identity of the database on which this process opened session t, "" when it did not.
func OpenedOn(s *Store, t saga.Token) string {
	id, _ := s.identities.Load(t)
	name, _ := id.(string)
	return name
}

// held is at most how many held works with fresh signals one Claim tells of.
const held = 1000

// Claim buries expired sessions and gives session t works that are due or orphaned, the longest waiting first.
func (s *Store) Claim(ctx context.Context, t saga.Token, c ledger.Claim) ([]ledger.Head, error) {
	known := make([][2]any, len(c.Known))
	for i, v := range c.Known {
		known[i] = [2]any{v.Saga, v.Version}
	}
	list, err := json.Marshal(known)
	if err != nil {
		return nil, fmt.Errorf("claim for session %s: %w", t, err)
	}
	args := ClaimArgs{Token: int64(t), Limit: max(c.Limit, 0), Known: string(list), GraceMS: c.Grace.Milliseconds(), Held: held, All: c.All}
	if c.All {
		args.Held = math.MaxInt32
	}
	var rows []HeadRow
	err = s.db.Pulse(ctx, func(q Queries) error { // on its own, so that it stands even when t is dead itself
		_, err := q.ExecContext(ctx, s.text.buryExpired, s.db.Clock())
		return err
	})
	if err == nil {
		err = s.db.Write(ctx, func(q Queries) error {
			var live int
			if err := q.QueryRowxContext(ctx, s.text.sessionLives, s.db.Clock(), int64(t)).Scan(&live); err != nil {
				return err
			}
			if live == 0 {
				return ledger.ErrSessionDead
			}
			rows, err = s.db.Claim(ctx, q, args)
			return err
		})
	}
	if err != nil {
		return nil, s.failed(ctx, err, "claim for session %s", t)
	}
	slices.SortStableFunc(rows, func(a, b HeadRow) int { return a.Since.Time().Compare(b.Since.Time()) })
	return heads(rows)
}

// failed wraps a driver's error with what was tried and what it means. It is nil when err is.
func (s *Store) failed(ctx context.Context, err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), s.db.Explain(ctx, err))
}

// token draws a session's name. Zero means nobody.
func token() saga.Token {
	for {
		var b [8]byte
		rand.Read(b[:]) // never fails: crypto/rand ends the program instead
		if t := saga.Token(binary.BigEndian.Uint64(b[:])); t != 0 {
			return t
		}
	}
}

// printable makes a label fit for a text column.
func printable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "?"), "\x00", "?")
}
