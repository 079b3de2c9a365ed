package sqlstore

import (
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/internal/valid"
	"github.com/amends-dev/amends/store/internal/witness"
)

// lag is what a fail-over may have forgotten and be met as every fail-over is (machine/F26). What has forgotten
// more was restored, as far as we know, and a person says so first.
const lag = time.Minute

// known is what a witness knows a ledger by.
type known struct {
	ID      string
	Begun   Flag // sessions were opened on what it is now
	Vouched Flag // a process runs on it that compared it with its witness
}

// known reads by which name a witness knows the ledger. One on which no session was opened yet gets a name
// of its own: it may be one of many copies of one that was prepared.
func (s *chains) known(ctx context.Context, q Queries) (k known, err error) {
	read := func() error { return q.QueryRowxContext(ctx, s.db.Text(vouched), s.db.Clock()).StructScan(&k) }
	if err := read(); err != nil || bool(k.Begun) {
		return k, err
	}
	if _, err := q.ExecContext(ctx, nameIt, newID(), k.ID); err != nil {
		return k, err
	}
	return k, read()
}

// newID draws the name of a ledger.
func newID() string {
	id := make([]byte, 16)
	crand.Read(id) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(id)
}

// witnessed compares the ledger with its witness. It returns what is to be said of the witness.
func (s *chains) witnessed(ctx context.Context, q Queries, k *known, identity string) (state string, err error) {
	m, why := s.db.Witness.Read(ctx, k.ID)
	if m != nil {
		err = s.behind(ctx, q, k.ID, m, identity, lag)
	}
	switch {
	case err != nil:
		return "", err
	case why != nil:
		return why.Error(), nil
	case m != nil:
		return ledger.WitnessKept, nil
	case bool(k.Begun && !k.Vouched), bool(k.Begun) && s.db.Alive == nil: // a file has one process only
		return ledger.WitnessNew, nil
	default:
		return ledger.WitnessKept, nil
	}
}

// behind refuses a database that has less than its witness saw. It does not where that is little, and the
// records of that time are met as those before a fail-over.
func (s *chains) behind(ctx context.Context, q Queries, id string, m *witness.Mark, identity string, least time.Duration) error {
	var has []struct {
		Session, Record Flag
		Heard           Moment
	}
	stored := m.Stored
	if stored.IsZero() { // it does not say
		stored = time.Unix(1<<36, 0)
	}
	if err := s.db.choose(ctx, q, &has, marked, int64(m.Session), m.Beats, m.Instance, m.Seq, m.Hash[:], m.Instance, s.db.Moment(stored), m.Database); err != nil {
		return err
	}
	h := has[0]
	if h.Session && (m.Instance == 0 || h.Record) {
		return nil
	}
	if lost := m.At.Sub(h.Heard.Time()); s.db.FailedOver != nil && s.db.FailedOver(m.Database, identity) && lost < least {
		return nil
	}
	return fmt.Errorf("%w: its witness (%s) saw what was stored at %s in %s, and that is not in this one, %s. It was put back from a backup, or one of the two is a copy of "+
		"the other: then give the copy a witness of its own. Nothing was begun: what it has forgotten could be done a second time. When it was restored: "+
		"amends recover --restored --reason WHY; amends recover --nothing-lost is refused while the witness knows more",
		ledger.ErrBehind, s.db.Witness.Where(id), m.At.UTC().Format(time.RFC3339), m.Database, identity)
}

// Saw tells the witness of the latest of the records that were stored.
func Saw(s *Store, entries []ledger.Entry, answers []ledger.Answer) {
	for i := len(answers) - 1; i >= 0; i-- {
		if a := &answers[i]; a.Result == ledger.Appended {
			r := &entries[i].Record
			s.chains.db.Witness.Saw(a.Number, r.Seq, r.Hash, a.At)
			return
		}
	}
}

// Recover stores what a person says of a database that may not be what it was. alone: no process runs,
// whatever the leases say.
func Recover(ctx context.Context, s *Store, r ledger.Recovery, alone bool) (done ledger.Recovered, err error) {
	c := s.chains
	if err := valid.Look("the ledger", r.By); err != nil {
		return done, c.failed(ctx, err, "recover the ledger")
	}
	var id string
	if err = c.db.read(ctx, func(ctx context.Context, q Queries) error { return q.QueryRowxContext(ctx, ledgerID).Scan(&id) }); err != nil {
		return done, c.failed(ctx, err, "recover the ledger")
	}
	m, why := c.db.Witness.Read(ctx, id)
	last := token()
	err = c.db.write(ctx, func(ctx context.Context, q Queries) error {
		if !alone { // a process that begins now waits, and knows then
			if _, err := q.ExecContext(ctx, `LOCK TABLE amends_sessions IN SHARE ROW EXCLUSIVE MODE`); err != nil {
				return err
			}
		}
		identity, err := c.db.Identity(ctx, q)
		if err != nil {
			return err
		}
		if done, err = c.recoverable(ctx, q, identity, alone); err != nil {
			return err
		}
		switch {
		case !r.NothingLost:
			return c.restored(ctx, q, &r, last)
		case errors.Is(why, witness.ErrUnread):
			return why
		case m != nil:
			if err := c.behind(ctx, q, id, m, identity, 0); err != nil {
				return err
			}
		}
		return c.nothingLost(ctx, q, &r, identity)
	})
	if err == nil && !r.NothingLost && !r.DryRun { // a database of the old name that is put back later lacks that session
		err = c.db.Witness.Put(ctx, id, &witness.Mark{Database: "what it was before it was restored", Session: last, At: time.Now()})
	}
	return done, c.failed(ctx, err, "recover the ledger")
}

// recoverable says what a recovery is about, and refuses it while a process runs.
func (s *chains) recoverable(ctx context.Context, q Queries, identity string, alone bool) (done ledger.Recovered, err error) {
	var live int64
	var heard Moment
	if err := q.QueryRowxContext(ctx, s.db.Text(alive), s.db.Clock(), identity).Scan(&live, &heard, &done.Moved); err != nil {
		return done, err
	}
	if live > 0 && !alone {
		return done, fmt.Errorf("%w: %d processes run on it, or were killed and their leases go on. Stop them, wait a lease, and say it again", ledger.ErrLocked, live)
	}
	done.Heard = heard.Time()
	var rows []struct {
		Saga    string
		Version int
		Works   int64
		Oldest  Moment
	}
	if err := s.db.choose(ctx, q, &rows, goingOn, string(saga.Compensating)); err != nil {
		return done, err
	}
	for _, r := range rows {
		done.Works = append(done.Works, ledger.Backlog{Saga: r.Saga, Version: r.Version, Works: r.Works, Oldest: r.Oldest.Time()})
	}
	return done, nil
}

// nothingLost has every session count as opened on the database as it is.
func (s *chains) nothingLost(ctx context.Context, q Queries, r *ledger.Recovery, identity string) error {
	if r.DryRun {
		return nil
	}
	if _, err := q.ExecContext(ctx, `UPDATE amends_sessions SET database = $1 WHERE database <> '`+ledger.SessionForgone+`'`, identity); err != nil {
		return err
	}
	return s.recovered(ctx, q, "nothing lost", r)
}

// restored has no session count as opened on the database as it is, and gives the ledger another name: what
// a witness knows under the old one is of what it was.
func (s *chains) restored(ctx context.Context, q Queries, r *ledger.Recovery, last machine.Token) error {
	if r.DryRun {
		return nil
	}
	if _, err := q.ExecContext(ctx, `UPDATE amends_sessions SET dead = true, database = '`+ledger.SessionForgone+`'`); err != nil {
		return err
	}
	if _, err := q.ExecContext(ctx, s.db.Text(forgone), s.db.Clock(), int64(last)); err != nil {
		return err
	}
	if _, err := q.ExecContext(ctx, `UPDATE amends_meta SET ledger_id = $1`, newID()); err != nil {
		return err
	}
	return s.recovered(ctx, q, "restored", r)
}

// recovered puts on record who said so.
func (s *chains) recovered(ctx context.Context, q Queries, what string, r *ledger.Recovery) error {
	return s.db.act(ctx, q, deed(ledger.DeedRecover, what, r.By))
}

const (
	// vouched reads what is [known].
	vouched = `
		SELECT ledger_id AS id, EXISTS (SELECT 1 FROM amends_sessions WHERE database <> '` + ledger.SessionForgone + `') AS begun,
			EXISTS (SELECT 1 FROM amends_sessions WHERE NOT dead AND witness = '` + ledger.WitnessKept + `' AND expires_at > {now}) AS vouched
		FROM amends_meta`

	// nameIt gives a ledger a name, unless another process has just done so.
	nameIt = `
		UPDATE amends_meta SET ledger_id = $1
		WHERE ledger_id = $2 AND NOT EXISTS (SELECT 1 FROM amends_sessions WHERE database <> '` + ledger.SessionForgone + `')`

	ledgerID = `SELECT ledger_id FROM amends_meta`

	// marked is what of a mark is there, and when a session was alive the last time on the mark's database: none is where a person
	// said that nothing was lost. A record that retention took is there as what it left, or was stored before the latest of which it left nothing.
	marked = `
		SELECT EXISTS (SELECT 1 FROM amends_sessions WHERE token = ? AND beats >= ?) AS session,
			EXISTS (SELECT 1 FROM amends_records WHERE instance = ? AND seq = ? AND hash = ?)
				OR EXISTS (SELECT 1 FROM amends_instances WHERE ref = ? AND NOT ` + Hears + `)
				OR coalesce(? <= (SELECT let_go_at FROM amends_meta), false) AS record,
			(SELECT max(renewed_at) FROM amends_sessions WHERE database = ?) AS heard`

	// alive is how many processes run, when one was alive the last time, and how many sessions were
	// opened on another database.
	alive = `
		SELECT count(CASE WHEN NOT dead AND expires_at > {now} THEN 1 END), max(renewed_at), count(CASE WHEN database <> $2 THEN 1 END)
		FROM amends_sessions`

	goingOn = `
		SELECT saga, version, count(*) AS works, min(updated_at) AS oldest FROM amends_instances
		WHERE finished_at IS NULL AND status <> ? GROUP BY saga, version ORDER BY saga, version`

	// forgone is a session on what was restored, for a ledger that has none: what was never in hand may be
	// forgotten, too.
	forgone = `
		INSERT INTO amends_sessions (token, label, database, knows, lock, witness, dead, opened_at, renewed_at, expires_at)
		SELECT $2, 'before it was restored', '` + ledger.SessionForgone + `', '[]', '', '', true, clock.now, clock.now, clock.now FROM (SELECT {now} AS now) AS clock`
)
