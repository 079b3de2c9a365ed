package sqlstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/valid"
	"github.com/amends-dev/amends/store/internal/witness"
)

// chains is everything of a ledger but appending.
type chains struct {
	db *Dialect

	identities sync.Map                // machine.Token → the identity of the database its session was opened on
	changed    atomic.Pointer[changed] // nil: as far as is known the database was always this one

	loads  *together[saga.ID, *ledger.Chain]
	said   *together[saga.ID, []machine.Signal]
	awaits *together[[]ledger.Wait, struct{}]
	blocks *together[blocked, error]
	waits  *together[[2]string, []ledger.Wait] // by name and key
}

func newChains(db *Dialect) *chains {
	s := &chains{db: db}
	s.loads, s.said = newTogether(2, s.loadEach), newTogether(1, s.signalsOf)
	s.awaits, s.waits = newTogether(1, s.await), newTogether(1, s.waitsFor)
	s.blocks = newTogether(1, s.addUp)
	return s
}

// Settle waits for the calls under way that were made for several callers, and makes no other.
func Settle(s *Store) {
	s.loads.calls.Close()
	s.said.calls.Close()
	s.awaits.calls.Close()
	s.blocks.calls.Close()
	s.waits.calls.Close()
}

// OpenSession begins a lease of ttl under a fresh random token, by the database's clock.
func (s *chains) OpenSession(ctx context.Context, ttl time.Duration, label string, knows []ledger.Version) (ledger.Lease, error) {
	lease, id := ledger.Lease{Token: token(), TTL: ttl}, ""
	err := s.db.Pulse(Again(ctx), func(ctx context.Context, q Queries) error {
		list, err := versions(knows)
		if err != nil {
			return err
		}
		if err := s.sameSchema(ctx, q); err != nil {
			return err
		}
		if err := s.sealing(ctx, q); err != nil {
			return err
		}
		k, err := s.known(ctx, q)
		if err != nil {
			return err
		}
		if lease.Database, err = s.db.Identity(ctx, q); err != nil {
			return err
		}
		if lease.Witness, err = s.witnessed(ctx, q, &k, lease.Database); err != nil {
			return err
		}
		alive := ""
		if s.db.Alive != nil {
			alive = s.db.Alive()
		}
		var at Moment
		row := q.QueryRowxContext(ctx, s.db.Text(openSession), s.db.Clock(), int64(lease.Token), valid.Printable(label), ttl.Milliseconds(), lease.Database, list, alive, lease.Witness)
		if err := row.Scan(&at, &lease.Controls, &id); err != nil {
			return err
		}
		lease.At = at.Time()
		if lease.Live, err = live(ctx, q); err != nil {
			return err
		}
		return s.learnChange(ctx, q, lease.Database)
	})
	if err != nil {
		return ledger.Lease{}, s.failed(ctx, err, "open session")
	}
	s.identities.Store(lease.Token, lease.Database)
	s.db.latest.Store(int64(lease.Token))
	s.db.Witness.Opened(ctx, id, witness.Mark{Database: lease.Database, Session: lease.Token, At: lease.At}, lease.Witness)
	return lease, nil
}

// versions encodes definitions as statements take them.
func versions(vs []ledger.Version) (string, error) {
	list := make([][2]any, len(vs))
	for i, v := range vs {
		list[i] = [2]any{v.Saga, v.Version}
	}
	b, err := json.Marshal(list)
	return string(b), err
}

// sameSchema refuses a schema that has become newer than this program: it may not understand what
// it reads there.
func (s *chains) sameSchema(ctx context.Context, q Queries) error {
	var version int64
	if err := q.QueryRowxContext(ctx, schemaVersion).Scan(&version); err != nil {
		return err
	}
	if version > s.db.Schema {
		return fmt.Errorf("%w: it has version %d, this program knows %d. Use a newer program", ledger.ErrSchema, version, s.db.Schema)
	}
	return nil
}

// sealing learns whether the ledger is sealed, and refuses a session without keys then.
func (s *chains) sealing(ctx context.Context, q Queries) error {
	sealed, err := s.isSealed(ctx, q)
	if err != nil {
		return err
	}
	s.db.sealed.Store(sealed)
	if sealed && s.db.Keys == nil {
		return errNoKeys
	}
	return nil
}

// isSealed asks it alone: another process may have sealed the ledger since.
func (s *chains) isSealed(ctx context.Context, q Queries) (sealed bool, err error) {
	err = q.QueryRowxContext(ctx, `SELECT sealed FROM amends_meta`).Scan(&sealed)
	return sealed, err
}

// changed says that sessions were opened on other databases than the present one.
type changed struct {
	identity string
	since    time.Time // when the first session was opened on the present one
	restored bool      // a person said of one that it was restored
}

// learnChange asks once per session whether this database is another one than it was.
func (s *chains) learnChange(ctx context.Context, q Queries, identity string) error {
	var first Moment
	var restored Flag
	if err := q.QueryRowxContext(ctx, since, identity).Scan(&first, &restored); err != nil {
		return err
	}
	if at := first.Time(); !at.IsZero() {
		s.changed.Store(&changed{identity: identity, since: at, restored: bool(restored)})
	}
	return nil
}

// Renew extends a lease to r.TTL from now. A dead or expired session is not revived.
func (s *chains) Renew(ctx context.Context, t machine.Token, r ledger.Renewal) (ledger.Lease, error) {
	lease := ledger.Lease{Token: t, TTL: r.TTL}
	err := s.db.Pulse(Again(ctx), func(ctx context.Context, q Queries) error {
		knows, err := versions(r.Knows)
		if err != nil {
			return err
		}
		if lease.Database, err = s.db.Identity(ctx, q); err != nil {
			return err
		}
		if opened := s.openedOn(t); opened != "" && opened != lease.Database {
			return fmt.Errorf("%w: opened on %s, now it is %s", ledger.ErrDatabaseChanged, opened, lease.Database)
		}
		var renewed []struct {
			RenewedAt       Moment `db:"renewed_at"`
			Beats, Controls int64
		}
		if err := sqlx.SelectContext(ctx, q, &renewed, s.db.Text(renewSession), s.db.Clock(), int64(t), r.TTL.Milliseconds(), knows, s.db.Witness.State(), s.db.Schema); err != nil {
			return err
		}
		if len(renewed) == 0 {
			return cmp.Or(s.sameSchema(ctx, q), ledger.ErrSessionDead)
		}
		lease.At, lease.Controls = renewed[0].RenewedAt.Time(), renewed[0].Controls
		s.db.Witness.Renewed(t, renewed[0].Beats, lease.At)
		if _, err := q.ExecContext(ctx, s.db.Text(leaveLines), s.db.Clock()); err != nil {
			return err
		}
		if lease.Live, err = live(ctx, q); err != nil {
			return err
		}
		lease.Stray, err = s.stray(ctx, q, t, r.InHand)
		return err
	})
	return orNone(lease, s.failed(ctx, err, "renew session %s", t))
}

// live returns the sessions that are not buried yet.
func live(ctx context.Context, q Queries) (ts []machine.Token, err error) {
	err = sqlx.SelectContext(ctx, q, &ts, unburied)
	return ts, err
}

// stray returns works that t holds and does not have in hand.
func (s *chains) stray(ctx context.Context, q Queries, t machine.Token, inHand []int64) ([]ledger.Instance, error) {
	list, err := json.Marshal(append([]int64{}, inHand...)) // never null
	if err != nil {
		return nil, err
	}
	var rows []HeadRow
	if err := sqlx.SelectContext(ctx, q, &rows, s.db.Text(stray), int64(t), string(list), ledger.MaxStray); err != nil {
		return nil, err
	}
	return heads(rows), nil
}

// Bury marks a session dead. Burying a dead session is not an error.
func (s *chains) Bury(ctx context.Context, t machine.Token) error {
	err := s.db.Pulse(Again(ctx), func(ctx context.Context, q Queries) error {
		_, err := q.ExecContext(ctx, s.db.Text(burySession), s.db.Clock(), int64(t))
		return err
	})
	return s.failed(ctx, err, "bury session %s", t)
}

// Locked are the sessions that are not buried yet and whose processes keep a file locked, by its name.
func Locked(ctx context.Context, s *Store) (sessions map[string][]machine.Token, err error) {
	var rows []struct {
		Token machine.Token
		Lock  string
	}
	err = s.chains.db.Pulse(Again(ctx), func(ctx context.Context, q Queries) error {
		rows = rows[:0]
		return sqlx.SelectContext(ctx, q, &rows, locked)
	})
	sessions = make(map[string][]machine.Token, len(rows))
	for _, r := range rows {
		sessions[r.Lock] = append(sessions[r.Lock], r.Token)
	}
	return sessions, s.chains.failed(ctx, err, "list the locks of sessions")
}

// BuryOthers marks every session but t dead, for a ledger that can prove that they are. It is not a
// method, so that the ledgers which embed a store do not offer it.
func BuryOthers(ctx context.Context, s *Store, t machine.Token) error {
	err := s.db.Pulse(Again(ctx), func(ctx context.Context, q Queries) error {
		_, err := q.ExecContext(ctx, s.db.Text(buryOthers), int64(t))
		return err
	})
	return s.failed(ctx, err, "bury the sessions before %s", t)
}

// OpenedOn returns the identity of the database on which this process opened session t, "" when it
// did not.
func OpenedOn(s *Store, t machine.Token) string {
	return s.openedOn(t)
}

func (s *chains) openedOn(t machine.Token) string {
	id, _ := s.identities.Load(t)
	name, _ := id.(string)
	return name
}

// Claim gives session t works that are due and known to it, and names those it holds that have an
// unread signal.
func (s *chains) Claim(ctx context.Context, t machine.Token, c ledger.Claim) (ledger.Claimed, error) {
	args := ClaimArgs{Token: int64(t), Limit: max(c.Limit, 0), Fresh: max(c.Fresh, 0)}
	var err error
	if args.Known, err = versions(c.Known); err == nil {
		args.Rooms, err = rooms(c.Rooms)
	}
	var a ClaimAnswer
	if err == nil {
		a, err = s.db.Claim(ctx, args)
	}
	if err == nil && !a.Live {
		err = ledger.ErrSessionDead
	}
	if err != nil {
		return ledger.Claimed{}, s.failed(ctx, err, "claim for session %s", t)
	}
	inOrder(a.Rows)
	return ledger.Claimed{Instances: heads(a.Rows), Controls: a.Controls}, nil
}

// rooms encodes where a process has room as statements take it. For a name that no database holds
// nothing waits.
func rooms(of map[string]int) (string, error) {
	list := make([][2]any, 0, len(of))
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if n := of[name]; n > 0 && name != "" && valid.Key("destination", name) == nil {
			list = append(list, [2]any{name, min(n, math.MaxInt32)})
		}
	}
	b, err := json.Marshal(list)
	return string(b), err
}

// inOrder puts works in the order of claims; what the session held already comes last.
func inOrder(rows []HeadRow) {
	slices.SortStableFunc(rows, func(a, b HeadRow) int {
		return cmp.Or(first(!a.Since.Time().IsZero(), !b.Since.Time().IsZero()), inLine(&a, &b))
	})
	turns, lines := make(map[Number]int, len(rows)), make(map[Text]int)
	for i := range rows {
		turns[rows[i].Number] = lines[rows[i].Waited]
		lines[rows[i].Waited]++
	}
	slices.SortStableFunc(rows, func(a, b HeadRow) int {
		return cmp.Or(first(!a.Since.Time().IsZero(), !b.Since.Time().IsZero()),
			first(a.class() == ledger.ClassCompensating, b.class() == ledger.ClassCompensating),
			cmp.Compare(turns[a.Number], turns[b.Number]), a.Since.Time().Compare(b.Since.Time()), begun(&a, &b))
	})
}

// inLine is the order of works that waited for the same.
func inLine(a, b *HeadRow) int {
	if a.Waited != "" {
		return cmp.Or(cmp.Compare(a.class(), b.class()), begun(a, b))
	}
	return cmp.Or(cmp.Compare(a.class(), b.class()), a.Since.Time().Compare(b.Since.Time()), begun(a, b))
}

// begun is the order of starting.
func begun(a, b *HeadRow) int {
	return cmp.Or(a.Created.Time().Compare(b.Created.Time()), cmp.Compare(a.Number, b.Number))
}

// first puts what is before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// class is where the work stood in the claim: one that has ended and has an unread signal counts as
// begun.
func (r *HeadRow) class() ledger.Class {
	if saga.Status(r.Status).Terminal() {
		return ledger.ClassBegun
	}
	return ledger.Class(r.Class)
}

// GiveBack releases works that t holds, and makes released ones due earlier.
func (s *chains) GiveBack(ctx context.Context, t machine.Token, works []ledger.Return) error {
	if len(works) == 0 {
		return nil
	}
	err := valid.Returns(works)
	if err == nil {
		list := make([][4]any, len(works))
		for i, w := range works {
			list[i][0] = w.Number
			if !w.Due.IsZero() {
				list[i][1] = w.Due.UnixMicro()
			}
			if w.WaitsFor != "" {
				list[i][2] = w.WaitsFor
			}
			if !w.Leaves.IsZero() {
				list[i][3] = w.Leaves.UnixMicro()
			}
		}
		var b []byte
		if b, err = json.Marshal(list); err == nil {
			err = s.db.GiveBack(Again(ctx), int64(t), string(b))
		}
	}
	return s.failed(ctx, err, "give back %d works of session %s", len(works), t)
}

// CatchUp mends what a clock that ran ahead left behind.
func (s *chains) CatchUp(ctx context.Context) (works, sessions int64, err error) {
	works, err = s.catchUp(ctx, s.db.Text(catchUpWorks))
	if err == nil {
		sessions, err = s.catchUp(ctx, s.db.Text(catchUpSessions))
	}
	return works, sessions, s.failed(ctx, err, "catch up with the clock")
}

// catchUp runs one statement by itself: were it done again for the sake of another, its answer
// would be none.
func (s *chains) catchUp(ctx context.Context, text string) (n int64, err error) {
	err = s.db.Plain(ctx, func(ctx context.Context, q Queries) error {
		res, err := q.ExecContext(ctx, text, s.db.Clock())
		if err == nil {
			n, err = res.RowsAffected()
		}
		return err
	})
	return n, err
}

// failed wraps a driver's error with what was tried and what it means. It is nil when err is.
func (s *chains) failed(ctx context.Context, err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return wrap(s.db.Explain(ctx, err), format, args...)
}

// wrap says of an error what was to be done. No error stays none.
func wrap(err error, what string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(what, args...), err)
}

// orNone is v, or nothing upon an error: what was read until then is not for the caller.
func orNone[T any](v T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return v, nil
}

// one is the first of what was found. Where nothing was, it is the error none.
func one[T any](found []T, err, none error) (v T, _ error) {
	switch {
	case err != nil:
		return v, err
	case len(found) == 0:
		return v, none
	}
	return found[0], nil
}

// token draws a session's name. Zero is never drawn: it stands for no session.
func token() machine.Token {
	for {
		var b [8]byte
		rand.Read(b[:]) // never fails: crypto/rand ends the program instead
		if t := machine.Token(binary.BigEndian.Uint64(b[:])); t != 0 {
			return t
		}
	}
}
