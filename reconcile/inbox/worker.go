package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/saga"
)

// errLost is returned when another process holds the entry by now.
var errLost = errors.New("the lease was lost")

// job is the work on one object under one lease.
type job struct {
	h     *Processor
	s     *source
	e     *intake.Entry // as it was leased, and later as it was last written
	fence int64
	owner string    // who leased it
	now   time.Time // when it was last written
	round intake.Round
	ends  time.Time // of the lease, on our clock: it was given after began
}

// work does what is owed for one leased object: it asks the source, then delivers what was
// accepted.
func (h *Processor) work(ctx context.Context, e *intake.Entry, began time.Time) {
	s, blocked := h.sources[e.Object.Source], e.Blocked != ""
	defer s.done()
	j := &job{h: h, s: s, e: e, fence: e.Fence, owner: e.Holder, round: intake.Round{FetchSeq: e.FetchRequested, Accepted: e.Accepted}, ends: began.Add(h.opts.Lease)}
	err := j.do(ctx)
	switch {
	case errors.Is(err, errLost):
		h.tell.Lost(e.Object)
	case err != nil && ctx.Err() == nil:
		h.opts.Log.WithField("object", e.Object.String()).WithError(err).Warn("the outcome could not be stored; the work is done again when the lease is over")
	case err == nil && j.e.Blocked != "" && !blocked:
		h.tell.Blocked(e.Object, j.e.Blocked)
	case err == nil && !j.e.Due.IsZero() && !j.e.Due.After(j.now):
		soon(h.claimSoon)
	}
}

// do works in bounded time, well before the lease is over: afterwards another process may have the
// object.
func (j *job) do(ctx context.Context) error {
	bounded, cancel := context.WithDeadline(ctx, j.ends.Add(-j.h.opts.Lease/3))
	defer cancel()
	if leased := j.e.Until.Add(-j.h.opts.Lease); j.s.policy.MustFetch(j.e, leased) {
		if finished, err := j.fetch(bounded); finished || err != nil {
			return err
		}
	}
	switch {
	case j.round.Accepted <= j.e.Delivered:
	case j.round.Accepted == j.e.Held:
		j.round.Held = true
	case bounded.Err() != nil:
		j.round.Deliver = bounded.Err()
	default:
		j.round.Deliver = j.deliver(bounded)
	}
	return j.update(ctx, func(now time.Time, e *intake.Entry) { j.end(ctx, e, now) })
}

// fetch asks the source and stores what it said. It finishes the work at once when nothing is to be
// delivered.
func (j *job) fetch(ctx context.Context) (finished bool, err error) {
	began, hints := time.Now(), j.e.FetchRequested-j.e.FetchCompleted
	var f intake.Fetched
	j.round.Fetch = j.h.guard(j.e.Object, func() error {
		said, err := j.s.Fetch(ctx, j.e.Object)
		f = intake.Fetched{Version: said.Version, Body: said.Body, Gone: said.Gone}
		if err == nil {
			f.Fingerprint, _ = intake.Fingerprint(f.Body, j.s.policy.Volatile...) // what is no JSON has none
		}
		return err
	})
	took := time.Since(began)
	j.s.Quota().Answered(j.round.Fetch)
	if j.round.Fetch != nil {
		j.h.tell.Fetched(j.e.Object, hints, took, "no answer", j.round.Fetch)
		return false, nil //nolint:nilerr // what was accepted before is still delivered; end stores the failure
	}
	var what string
	err = j.update(ctx, func(now time.Time, e *intake.Entry) {
		j.round.Fetch = j.h.guard(e.Object, func() (err error) {
			*e, what, err = intake.Receive(*e, &f, j.round.FetchSeq, now, &j.s.policy)
			return err
		})
		j.round.Accepted = e.Accepted
		if finished = e.Accepted <= e.Delivered; finished {
			j.end(ctx, e, now)
		}
	})
	if err == nil {
		j.h.tell.Fetched(j.e.Object, hints, took, what, j.round.Fetch)
	}
	return finished, err
}

// deliver hands the accepted state to the user's function.
func (j *job) deliver(ctx context.Context) error {
	c, began := Snapshot(j.e.Snapshot()), time.Now()
	err := j.h.guard(j.e.Object, func() error { return j.s.deliver(ctx, c, j.weigh, j.undecided) })
	if j.round.Held {
		return nil
	}
	if errors.Is(err, errAccepted) {
		j.h.opts.Log.WithFields(logrus.Fields{"object": j.e.Object.String(), "revision": c.Revision}).Info("nothing is done for this version: a person has accepted what stands")
		j.round.Passed = true
		return nil
	}
	if u, waits := errors.AsType[*intake.Undecided](err); waits {
		if j.e.LastError != intake.Brief(err) { // once, and not at every look
			j.h.opts.Log.WithFields(logrus.Fields{"object": j.e.Object.String(), "job": u.Job, "class": u.Class}).Info("what is newer waits until a person has decided on a difference")
		}
		return err
	}
	j.h.tell.Delivered(&c, time.Since(began), err)
	return err
}

var errHeld = errors.New("the withdrawal is held until a person releases it")

// weigh lets a withdrawal through within the bound of its source, and once a person has released it.
func (j *job) weigh(ctx context.Context, id saga.ID) error {
	j.round.Withdraws = true
	if j.s.bound.Count == Unbounded || j.e.Let == j.round.Accepted {
		return nil
	}
	var t intake.Tally
	var held bool
	err := j.h.gate.Weigh(ctx, j.e.Object, id, j.s.bound, func(now time.Time, e *intake.Entry, tally intake.Tally) error {
		if err := j.lost(e); err != nil {
			return err
		}
		t, held = tally, !e.Weigh(j.round.Accepted, now, tally, &j.s.bound)
		return nil
	})
	if err != nil || !held {
		return err
	}
	if j.round.Held = true; !t.Held {
		j.h.opts.Log.WithFields(logrus.Fields{"source": j.s.Name, "let_through": t.Withdrawn, "window": j.s.bound.Window.String()}).
			Error("the source withdraws more than its bound: it is held from now on, until a person looks (amends inbox objects --held) and releases or drops it")
	}
	return errHeld
}

// errAccepted is about a version with which a person has taken what stands as right.
var errAccepted = errors.New("what stands was accepted")

// undecided is an error while a person is still to decide on what a comparison found about the work, and where they have accepted that.
func (j *job) undecided(ctx context.Context, ch *saga.Change) error {
	f, err := j.h.gate.Found(ctx, ch.ID.Work)
	leased := j.e.Until.Add(-j.h.opts.Lease)
	switch {
	case err != nil:
		return err
	case f.Open != nil:
		return f.Open
	case j.e.Version.Clock == intake.NoClock: // what it counts may be another state than the one that was shown
		return nil
	case f.Accepted != "" && saga.CompareRevisions(ch.Revision, f.Accepted) <= 0 && (f.Until.IsZero() || leased.Before(f.Until)):
		return errAccepted
	default:
		return nil
	}
}

// end ends the lease. Work that our own stop cut short was no attempt.
func (j *job) end(ctx context.Context, e *intake.Entry, now time.Time) {
	if ctx.Err() != nil && j.round.Err() != nil {
		intake.Release(e, &j.round, now)
		return
	}
	intake.Finish(e, &j.round, now, &j.s.policy)
}

// update changes the entry if it still is ours. It is not cut short by a stop. When the lease is
// over and no other process has taken the entry since, what we learned still counts.
func (j *job) update(ctx context.Context, change func(now time.Time, e *intake.Entry)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), j.h.opts.Lease/3)
	defer cancel()
	return j.h.gate.Update(ctx, j.e.Object, func(now time.Time, e *intake.Entry) error {
		if err := j.lost(e); err != nil {
			return err
		}
		change(now, e)
		written := *e
		j.e, j.now = &written, now
		return nil
	})
}

// lost is an error when another process has the entry by now.
func (j *job) lost(e *intake.Entry) error {
	if e.Holder != j.owner || e.Fence != j.fence {
		return fmt.Errorf("%s: %w", e.Object, errLost)
	}
	return nil
}
