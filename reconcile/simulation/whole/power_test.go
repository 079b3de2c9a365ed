package whole

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/plan"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/internal/scan"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// power is what a process dies without: at its n-th boundary everything it does comes to nothing
// from then on. A boundary is before and behind every write to ledger and store, and every call to
// shop, books and mail server.
type power struct {
	left   atomic.Int64 // boundaries until the crash; never reached when it begins at zero
	dead   atomic.Bool
	cut    context.CancelFunc
	writes atomic.Int64 // that anybody but a planner makes
}

var errDead = errors.New("this process has crashed")

func (p *power) boundary() error {
	if p.left.Add(-1) == 0 {
		p.dead.Store(true)
		p.cut()
	}
	if p.dead.Load() {
		return errDead
	}
	return nil
}

// around calls f between two boundaries. What f did stays done when the second is where the process
// dies.
func (p *power) around(f func() error) error {
	if err := p.boundary(); err != nil {
		return err
	}
	err := f()
	return errors.Join(p.boundary(), err)
}

// write is around, for a write.
func write[T any](p *power, f func() (T, error)) (v T, err error) {
	p.writes.Add(1)
	return planning(p, f)
}

// plan is around, for a write of a planner: to the tables of listings, plans and drift.
func planning[T any](p *power, f func() (T, error)) (v T, err error) {
	err = p.around(func() (err error) {
		v, err = f()
		return err
	})
	return v, err
}

// call is around, for a question to the shop or the books.
func call[Q, A any](p *power, ask func(context.Context, Q) (A, error)) func(context.Context, Q) (A, error) {
	return func(ctx context.Context, q Q) (A, error) {
		return planning(p, func() (A, error) { return ask(ctx, q) })
	}
}

func void(f func() error) func() (struct{}, error) {
	return func() (struct{}, error) { return struct{}{}, f() }
}

// ledgerPort is the ledger as a process sees it.
type ledgerPort struct {
	ledger.Ledger
	p *power
}

func (l *ledgerPort) OpenSession(ctx context.Context, ttl time.Duration, label string, knows []ledger.Version) (ledger.Lease, error) {
	return write(l.p, func() (ledger.Lease, error) { return l.Ledger.OpenSession(ctx, ttl, label, knows) })
}

func (l *ledgerPort) Renew(ctx context.Context, t machine.Token, r ledger.Renewal) (ledger.Lease, error) {
	return write(l.p, func() (ledger.Lease, error) { return l.Ledger.Renew(ctx, t, r) })
}

func (l *ledgerPort) Bury(ctx context.Context, t machine.Token) error {
	_, err := write(l.p, void(func() error { return l.Ledger.Bury(ctx, t) }))
	return err
}

func (l *ledgerPort) Append(ctx context.Context, t machine.Token, es []ledger.Entry) ([]ledger.Answer, error) {
	return write(l.p, func() ([]ledger.Answer, error) { return l.Ledger.Append(ctx, t, es) })
}

func (l *ledgerPort) Claim(ctx context.Context, t machine.Token, c ledger.Claim) (ledger.Claimed, error) {
	return write(l.p, func() (ledger.Claimed, error) { return l.Ledger.Claim(ctx, t, c) })
}

func (l *ledgerPort) GiveBack(ctx context.Context, t machine.Token, works []ledger.Return) error {
	_, err := write(l.p, void(func() error { return l.Ledger.GiveBack(ctx, t, works) }))
	return err
}

func (l *ledgerPort) Post(ctx context.Context, id saga.ID, s machine.Signal) (ledger.Posted, error) {
	return write(l.p, func() (ledger.Posted, error) { return l.Ledger.Post(ctx, id, s) })
}

func (l *ledgerPort) Describe(ctx context.Context, s *program.Spec) error {
	_, err := write(l.p, void(func() error { return l.Ledger.Describe(ctx, s) }))
	return err
}

func (l *ledgerPort) Count(ctx context.Context, c ledger.Counter, totals []ledger.Duplicate) error {
	_, err := write(l.p, void(func() error { return l.Ledger.Count(ctx, c, totals) }))
	return err
}

func (l *ledgerPort) SetControl(ctx context.Context, t machine.Token, c ledger.Control) (ledger.Control, error) {
	return write(l.p, func() (ledger.Control, error) { return l.Ledger.SetControl(ctx, t, c) })
}

// storePort is the store as a process sees it. It watches the gate: see check.
type storePort struct {
	*memory.DB
	p     *power
	watch *watch
}

type (
	judging  = func(time.Time, []intake.Delivery, map[intake.Object]*intake.Entry) error
	deciding = func(time.Time, *intake.Entry) error
)

func (s *storePort) Judge(ctx context.Context, limit int, decide judging) (int, error) {
	return write(s.p, func() (int, error) {
		return s.DB.Judge(ctx, limit, func(now time.Time, ds []intake.Delivery, es map[intake.Object]*intake.Entry) error {
			before := map[intake.Object]intake.Entry{}
			for o, e := range es {
				before[o] = *e
			}
			err := decide(now, ds, es)
			for o, e := range es {
				was := before[o]
				s.watch.compare(&was, e)
			}
			return errors.Join(err, s.p.boundary())
		})
	})
}

func (s *storePort) Lease(ctx context.Context, limit int, decide deciding) ([]intake.Entry, error) {
	return write(s.p, func() ([]intake.Entry, error) { return s.DB.Lease(ctx, limit, s.watched(decide)) })
}

func (s *storePort) Update(ctx context.Context, o intake.Object, decide deciding) error {
	_, err := write(s.p, void(func() error { return s.DB.Update(ctx, o, s.watched(decide)) }))
	return err
}

func (s *storePort) watched(decide deciding) deciding {
	return func(now time.Time, e *intake.Entry) error {
		before := *e
		err := decide(now, e)
		s.watch.compare(&before, e)
		return errors.Join(err, s.p.boundary())
	}
}

func (s *storePort) Advance(ctx context.Context, p scan.Position, c scan.Catch) (scan.Position, error) {
	if len(c.Events) > 0 { // the inbox is not the planner's
		s.p.writes.Add(1)
	}
	return planning(s.p, func() (scan.Position, error) { return s.DB.Advance(ctx, p, c) })
}

func (s *storePort) Discard(ctx context.Context, q scan.SightingQuery, limit int) (int, error) {
	return planning(s.p, func() (int, error) { return s.DB.Discard(ctx, q, limit) })
}

func (s *storePort) Draft(ctx context.Context, job string) (plan.Ref, error) {
	return planning(s.p, func() (plan.Ref, error) { return s.DB.Draft(ctx, job) })
}

func (s *storePort) Find(ctx context.Context, n plan.Ref, fs []plan.Finding) error {
	_, err := planning(s.p, void(func() error { return s.DB.Find(ctx, n, fs) }))
	return err
}

func (s *storePort) Finish(ctx context.Context, n plan.Ref, p *plan.Plan) (time.Time, error) {
	return planning(s.p, func() (time.Time, error) { return s.DB.Finish(ctx, n, p) })
}

func (s *storePort) Done(ctx context.Context, n plan.Ref, rows []plan.Row) error {
	_, err := write(s.p, void(func() error { return s.DB.Done(ctx, n, rows) }))
	return err
}

func (s *storePort) Remember(ctx context.Context, n plan.Ref, part plan.Part, fs []plan.Finding) error {
	_, err := planning(s.p, void(func() error { return s.DB.Remember(ctx, n, part, fs) }))
	return err
}

// watch compares every entry of the gate before and after each transaction.
type watch struct {
	mu     sync.Mutex
	broken []string
}

func (w *watch) compare(before, after *intake.Entry) {
	complain := func(format string, args ...any) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.broken = append(w.broken, after.Object.String()+": "+fmt.Sprintf(format, args...))
	}
	if after.Version.Compare(before.Version) < 0 {
		complain("I-4: version %s became %s", before.Version.Revision(), after.Version.Revision())
	}
	if before.Deleted && !after.Deleted {
		complain("I-5: it was resurrected, and no order of this shop ever comes back")
	}
}
