package schedule

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amends-dev/amends/internal/faults"
	"github.com/amends-dev/amends/internal/nap"
	"github.com/amends-dev/amends/internal/tee"
	"github.com/amends-dev/amends/saga"
)

// Runner runs jobs when they are due. Any number of processes may run the same jobs on one store.
type Runner struct {
	store  Store
	jobs   []Job
	opts   Options
	holder string
	tell   *Listener
	ran    atomic.Bool
	soon   map[string]chan struct{} // by job: a run was asked for in this process
}

// New returns a runner of jobs. It does nothing before [Runner.Run]. Every fault of the jobs and of
// o is reported at once; nil options mean the defaults.
func New(s Store, jobs []Job, o *Options) (*Runner, error) {
	opts := o.withDefaults()
	wrong := faults.List{opts.validate()}
	wrong.Whenf(len(jobs) == 0, "there are no jobs: nothing would be run")
	names := map[string]bool{}
	all := make([]Job, len(jobs))
	for i := range jobs {
		all[i] = jobs[i].withDefaults()
		wrong = append(wrong, all[i].validate())
		wrong.Whenf(names[all[i].Name], "two jobs are called %q", all[i].Name)
		names[all[i].Name] = true
	}
	if err := wrong.Err(); err != nil {
		return nil, fmt.Errorf("new runner: %w", err)
	}
	holder := rand.Text()[:10]
	if opts.Holder != "" {
		holder = opts.Holder + " " + holder
	}
	soon := make(map[string]chan struct{}, len(all))
	for i := range all {
		soon[all[i].Name] = make(chan struct{}, 1)
	}
	return &Runner{store: s, jobs: all, opts: opts, holder: holder, tell: tee.Of(logTo(opts.Log), opts.Listener), soon: soon}, nil
}

// Request is the function of this name, and has a job of this runner begin at once.
func (r *Runner) Request(ctx context.Context, job, what string, by saga.Actor) (RunRow, error) {
	asked, err := Request(ctx, r.store, job, what, by)
	select {
	case r.soon[job] <- struct{}{}:
	default: // another process has the job, or it looks already
	}
	return asked, err
}

// warn says when a job really runs whose schedule has steps that are not equal.
func (r *Runner) warn(j *Job) {
	text, err := Parse(j.Schedule, j.Zone)
	if err != nil { // New has refused it
		return
	}
	for _, words := range text.steps {
		r.opts.Log.WithField("job", j.Name).Warnf("schedule %q: %s", text, words)
	}
}

// Run runs the jobs until ctx ends. Then nothing new is begun, the contexts of those at work end,
// their runs are given back, and Run returns nil when all of them have returned. A store that fails
// is tried again. A runner runs once.
func (r *Runner) Run(ctx context.Context) error {
	if r.ran.Swap(true) {
		return errors.New("this runner has run already; make a new one")
	}
	var workers sync.WaitGroup
	for i := range r.jobs {
		r.warn(&r.jobs[i])
		w := &worker{Runner: r, job: &r.jobs[i]}
		workers.Go(func() { w.run(ctx) })
	}
	workers.Wait()
	return nil
}

// worker runs one job in this process.
type worker struct {
	*Runner

	job       *Job
	described bool
	begun     int64     // fence of the latest attempt of this worker
	swept     time.Time // when old runs were last deleted, by our clock
	looked    time.Time // when it was last asked whether the job is stale, by our clock
	stale     bool
	text      Schedule // as the database had it last
	zone      string
}

// run looks what is due and does it, until ctx ends.
func (w *worker) run(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		claimed, t, err := w.look(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			w.opts.Log.WithField("job", w.job.Name).WithError(err).Warn("looking what is due failed; trying again")
			_ = nap.For(ctx, min(w.opts.Poll, time.Second))
		case err == nil && claimed != nil:
			w.begun = claimed.Fence
			w.attempt(ctx, claimed, &t.agenda.State, began)
		case err != nil: // the stop came first, and what was asked for may be stored all the same
			w.leave(ctx)
		default:
			_ = nap.Until(ctx, w.soon[w.job.Name], min(t.agenda.quiet(t.now, w.text), w.opts.Poll))
		}
	}
}

// turned is what a turn left behind, for when it is known to be stored.
type turned struct {
	now    time.Time
	agenda *Agenda
	fault  error // of the plan; runs go on nevertheless
}

// turn is one turn at the job. It plans what is due first, whatever it is for: instants that come
// during a run are judged while it is known to go on.
func (w *worker) turn(ctx context.Context, decide func(now time.Time, a *Agenda) error) (turned, error) {
	var t turned
	err := w.store.Turn(ctx, w.job.Name, func(now time.Time, a *Agenda) error {
		if !w.described {
			describe(now, &a.State, w.job)
		}
		t = turned{now: now, agenda: a}
		if t.fault = w.parse(&a.State); t.fault == nil {
			plan(now, a, w.text)
		}
		return decide(now, a)
	})
	if err != nil {
		return t, err
	}
	w.told(&t)
	return t, nil
}

// parse reads the schedule that a job has in the database, which the newest process described.
// Zones take long to read, so one that is known is not read again.
func (w *worker) parse(s *JobState) error {
	if w.text.zone != nil && w.text.text == s.Schedule && w.zone == s.Zone {
		return nil
	}
	text, err := Parse(s.Schedule, s.Zone)
	w.text, w.zone = text, s.Zone
	return err
}

// look claims what is to be done now, if anything is. An answer that takes longer than the lease is
// none.
func (w *worker) look(ctx context.Context) (claimed *RunRow, t turned, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.job.Lease)
	defer cancel()
	sweep := w.opts.Keep > 0 && (w.swept.IsZero() || time.Since(w.swept) > day)
	t, err = w.turn(ctx, func(now time.Time, a *Agenda) error {
		w.giveBack(now, a)
		if claimed = claim(now, a, w.holder, w.job.Lease); claimed != nil {
			row := *claimed
			claimed = &row
		}
		if sweep {
			a.Forget = now.Add(-w.opts.Keep)
		}
		return nil
	})
	if err != nil {
		return nil, t, err
	}
	w.described = true
	if sweep {
		w.swept = time.Now()
	}
	return claimed, t, nil
}

// giveBack gives back what the worker has claimed without hearing of it: its answer was lost. An
// attempt that was begun and whose end could not be recorded is another matter: it keeps its lease,
// and counts as a crash.
func (w *worker) giveBack(now time.Time, a *Agenda) {
	for i := range a.Open {
		if r := &a.Open[i]; r.Running() && r.Holder == w.holder && r.Fence > w.begun {
			release(now, r, r.Outcome)
		}
	}
}

// leave gives back what the worker may have claimed just before it stopped, so that others need not
// wait for a lease.
func (w *worker) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(w.job.Lease, lastWord))
	defer cancel()
	for ctx.Err() == nil {
		if _, err := w.turn(ctx, func(now time.Time, a *Agenda) error { w.giveBack(now, a); return nil }); err == nil {
			return
		}
		_ = nap.For(ctx, w.job.Lease/20)
	}
}

// lastWord is how long a stop waits for a database that does not answer.
const lastWord = 5 * time.Second

// quiet is for how long nothing will be due: a hint, since all that counts is the database's clock
// at the next turn.
func (a *Agenda) quiet(now time.Time, text Schedule) time.Duration {
	next := now.Add(day)
	sooner := func(t time.Time) {
		if !t.IsZero() && t.Before(next) {
			next = t
		}
	}
	if a.pause().Is() {
		return day // until an operator unpauses
	}
	for _, rows := range [][]RunRow{a.Open, a.New} {
		for i := range rows {
			switch r := &rows[i]; {
			case r.Running() && r.Until.After(now):
				return r.Until.Sub(now) // who is at it looks for himself when he is done
			case r.Open():
				sooner(r.Due)
			}
		}
	}
	if !a.buffers() {
		sooner(text.Next(a.State.Planned))
	}
	return max(next.Sub(now), 0)
}

// told tells the listener what a turn did.
func (w *worker) told(t *turned) {
	if t.fault != nil {
		w.opts.Log.WithError(t.fault).Warn("the schedule in the database cannot be followed; a newer program may have described it")
	}
	for _, rows := range [][]RunRow{t.agenda.Open, t.agenda.New} {
		for i := range rows {
			switch r := &rows[i]; {
			case !r.Open():
				w.tell.Ended(r)
			case r.Number != 0 && r.Created.Equal(t.now):
				w.tell.Planned(r)
			}
		}
	}
	w.watch(t)
}

// watch tells, once, that a job got stale, and that all is well again.
func (w *worker) watch(t *turned) {
	if !w.looked.IsZero() && time.Since(w.looked) < time.Minute && !w.stale {
		return
	}
	w.looked = time.Now()
	why := Stale(t.now, &t.agenda.State)
	if w.stale != (why != "") {
		w.stale = why != ""
		w.tell.Stale(w.job.Name, why)
	}
}
