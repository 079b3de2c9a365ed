package scan

import (
	"context"
	"errors"
	"fmt"

	"github.com/amends-dev/amends/internal/asking"
	"github.com/amends-dev/amends/internal/intake"
)

func (s *Sweep) changedName() string     { return s.Name + "/changed" }
func (s *Sweep) sideName(d Side) string  { return s.Name + "/" + string(d) }
func (s *Sweep) partsName(d Side) string { return s.sideName(d) + "/" }

// Changed reads what changed since the last time into the inbox, page by page. It goes on where an
// interrupted run stopped. What the source does wrong makes the report partial; an error says that
// the run had to end for another reason: the store failed, another process sweeps ([ErrMoved]), or
// it was told to stop.
func (s *Sweep) Changed(ctx context.Context) (Report, error) {
	r := &incremental{caller: caller{Sweep: s, quota: s.Source.Quota}}
	r.report.Result = OK
	if s.Source.Changed == nil {
		return r.report, fmt.Errorf("sweep %s: its source has no Changed: only a full sweep can read it", s.Name)
	}
	err := r.run(ctx)
	r.report.Calls = r.calls.Load()
	r.report.After = r.cursor.String()
	if r.cursor.FullScanWanted != nil {
		r.report.FullWanted = r.cursor.FullScanWanted.Reason
	}
	if err != nil {
		r.report.partial(err.Error())
		if halt(err) {
			return r.report, fmt.Errorf("sweep %s: %w", s.Name, err)
		}
	}
	return r.report, nil
}

// incremental is one run of an incremental sweep.
type incremental struct {
	caller

	position Position
	cursor   cursor
	report   Report
}

func (r *incremental) run(ctx context.Context) (err error) {
	if err := r.open(ctx); err != nil {
		return err
	}
	r.report.Before = r.cursor.String()
	resumed := r.cursor.Sync != nil
	for {
		if err := r.pass(ctx); err != nil {
			return err
		}
		if !resumed {
			return nil
		}
		resumed = false // and then what changed since that one began
	}
}

// open reads where the sweep stands, and what a full sweep has seen meanwhile.
func (r *incremental) open(ctx context.Context) (err error) {
	if r.position, err = load(ctx, r.Store, r.changedName(), &r.cursor); err != nil {
		return err
	}
	var full generation
	if _, err = load(ctx, r.Store, r.sideName(SourceSide), &full); err != nil {
		return err
	}
	r.cursor.covered(full.LastComplete)
	return nil
}

// pass goes through what changed, to the end of the listing.
func (r *incremental) pass(ctx context.Context) error {
	r.cursor.begin(r.Now(), &r.Config)
	for expired := false; ; {
		q, page := r.cursor.query(&r.Config), Page{}
		err := r.ask(ctx, func(ctx context.Context) (err error) {
			page, err = r.Source.Changed(ctx, q)
			return err
		})
		switch {
		case errors.Is(err, ErrExpired) && !expired && q.Cursor != "":
			expired = true
			r.cursor.expire()
			continue
		case err != nil:
			return r.fail(ctx, fmt.Errorf("list what changed since %s: %w", r.cursor.String(), err))
		}
		if finished, err := r.take(ctx, q, &page); finished || err != nil {
			return err
		}
	}
}

// take stores a page.
func (r *incremental) take(ctx context.Context, q Query, page *Page) (finished bool, err error) {
	now := r.Now()
	out := r.cursor.page(q, page, now, &r.Config)
	r.report.Violations += out.violations
	switch out.next {
	case wider:
		return false, nil
	case broken:
		return false, r.fail(ctx, errors.New(out.why))
	case more, finish:
	}
	r.report.Pages++
	r.report.Seen += int64(len(page.Objects))
	events := make([]intake.Event, len(page.Objects))
	for i := range page.Objects {
		events[i] = r.Source.event(&page.Objects[i], now)
	}
	return out.next == finish, r.save(ctx, Catch{Events: events})
}

// fail stores that the run ended early, and returns why. What was stored before stays; the cursor
// stands where it did.
func (r *incremental) fail(ctx context.Context, why error) error {
	if halt(why) {
		return why
	}
	if !errors.Is(why, asking.ErrSpent) { // then the cursor is not to blame
		r.cursor.fail()
	}
	if err := r.save(ctx, Catch{}); err != nil {
		return errors.Join(why, err)
	}
	return why
}

func (r *incremental) save(ctx context.Context, page Catch) error {
	r.cursor.Writer = r.by
	return r.advance(ctx, &r.position, &r.cursor, page)
}

// Restart makes the next incremental sweep begin at the beginning of the listing.
func (s *Sweep) Restart(ctx context.Context) error {
	var c cursor
	p, err := load(ctx, s.Store, s.changedName(), &c)
	if err == nil && p.Serial > 0 {
		err = s.advance(ctx, &p, &cursor{Ahead: c.Ahead, Writer: s.by}, Catch{})
	}
	if err != nil {
		return fmt.Errorf("restart the sweep %s: %w", s.Name, err)
	}
	return nil
}
