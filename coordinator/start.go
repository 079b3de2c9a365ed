package coordinator

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/nap"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// ErrConflict is matched by the error of a start whose work is known with another identity: the
// same business key now says something else. The work goes on with its first input.
var ErrConflict = errors.New("the work is known with another input")

// ErrInvalid is matched by the error of a start whose work id, input or revision can never be
// stored: it names all that is wrong. Nothing was stored. It is the caller's fault and not the
// ledger's: an API answers 400, and not 503.
var ErrInvalid = ledger.ErrInvalid

// ErrForgotten is matched by the error of whatever is said to a work whose records have gone by retention ([saga.Retain]): a newer version of its
// source that says something else, an act of a person, an answer. Nothing was stored. What the work made is changed at its destination, by hand.
var ErrForgotten = ledger.ErrForgotten

// ErrUnknownSaga is matched by the error of a start of a saga that is not registered here.
var ErrUnknownSaga = errors.New("no such saga is registered")

// Started tells what became of a start.
type Started struct {
	saga.Summary
	Duplicate bool // the work was known; the summary is its state and results so far
	// Revised: the work was known at an older version of its source. It will begin the newer one at
	// its next step boundary, unless both say the same.
	Revised bool
	Stale   bool // the work has heard of a newer version; this one changes nothing
}

// Start makes a unit of work durable and sets it going; it does not wait for its end. work is the
// business identity, for ever: a second start of the same work runs nothing, is counted, and
// returns what is there. A second start with another identity returns what is there too, with an
// error that matches [ErrConflict]. With a newer revision it is the same work once more: every step
// is told what it left behind before.
//
// Everything that is wrong with the input is reported at once, before anything is stored, by an
// error that matches [ErrInvalid]. When ctx ends before the ledger has answered, the work may or may
// not be stored: start it again to learn which.
func (c *Coordinator) Start(ctx context.Context, sagaName, work string, input any, o *saga.StartOptions) (Started, error) {
	in, err := c.accept(sagaName, work, input, o)
	if err != nil {
		return Started{}, err
	}
	return c.start(ctx, in)
}

// start is Start of what was accepted.
func (c *Coordinator) start(ctx context.Context, in intake) (Started, error) {
	if c.isStopping() {
		return Started{}, fmt.Errorf("start %s: %w", in.id, errStopping)
	}
	first, err := c.enter(ctx, &in)
	if err != nil {
		return Started{}, fmt.Errorf("start %s: %w", in.id, err)
	}
	if first == nil {
		return c.duplicate(ctx, in)
	}
	reply := make(chan started, 1)
	go func() { // what was sent does not end with its caller
		if w, cmd, ok := c.begin(in, ctx.Done(), first, reply); w != nil {
			w.run(cmd, ok) // on a stack that what came before has left
		}
	}()
	select {
	case r := <-reply:
		if err := r.failure(ctx); err != nil {
			return Started{}, fmt.Errorf("start %s: %w", in.id, err)
		}
		if !r.exists {
			return Started{Summary: r.summary}, nil
		}
		return c.duplicate(ctx, in)
	case <-ctx.Done():
		return Started{}, fmt.Errorf("start %s: the ledger has not answered yet, the work may be stored: %w", in.id, ctx.Err())
	}
}

// starting is the one start of a work that is under way.
type starting struct {
	bytes int
	known bool // the work is in the ledger; set before over is closed
	over  chan struct{}
}

// ErrBusy is matched by the error of a start that found no room: as many as this process keeps are
// waiting for the ledger's answer. Nothing was stored. Start it again in a moment.
var ErrBusy = errors.New("too many starts are waiting for the ledger")

// enter makes this start the only one of its work that is under way. If another one is, it waits for the answer to that one,
// and returns nil once the work is in the ledger.
func (c *Coordinator) enter(ctx context.Context, in *intake) (*starting, error) {
	for ctx.Err() == nil {
		c.mu.Lock()
		other, size := c.starting[in.id], len(in.accepted.Input)
		if other == nil {
			defer c.mu.Unlock()
			if len(c.starting) >= c.opts.MaxWorks || c.startBytes > 0 && int64(c.startBytes+size) > c.opts.MaxBytes/4 {
				return nil, fmt.Errorf("%w: nothing was stored, start it again in a moment", ErrBusy)
			}
			c.startBytes += size
			mine := &starting{bytes: size, over: make(chan struct{})}
			c.starting[in.id] = mine
			return mine, nil
		}
		c.mu.Unlock()
		select {
		case <-other.over:
			if other.known {
				return nil, nil
			}
		case <-ctx.Done():
		}
	}
	return nil, fmt.Errorf("nothing was sent: %w", ctx.Err())
}

// leave ends a start that was under way.
func (c *Coordinator) leave(in *intake, s *starting, known bool) {
	c.mu.Lock()
	delete(c.starting, in.id)
	c.startBytes -= s.bytes
	c.mu.Unlock()
	s.known = known
	close(s.over)
}

// intake is an accepted start.
type intake struct {
	id       saga.ID
	program  saga.Program
	accepted program.Accepted
	revision string
	source   string
	cause    string
	starter  string
	nonce    int64
	later    time.Time // it begins then
}

func (in *intake) start() *machine.Start {
	return &machine.Start{Revision: in.revision, Input: in.accepted.Input, Cause: in.cause, Starter: in.starter, Nonce: in.nonce, NotBefore: in.later, Tags: in.accepted.Tags, Identity: in.accepted.Apart()}
}

// started is the ledger's answer to a start.
type started struct {
	summary saga.Summary
	exists  bool
	err     error
}

// failure is why there is no answer, or nil. A start is withdrawn because its caller's ctx has
// ended, which is what the caller has to be told, whichever of the two it hears of first.
func (s *started) failure(ctx context.Context) error {
	if errors.Is(s.err, errWithdrawn) {
		return fmt.Errorf("%w: %w", s.err, ctx.Err())
	}
	return s.err
}

func (c *Coordinator) accept(sagaName, work string, input any, o *saga.StartOptions) (intake, error) {
	if sagaName == BatchSaga { // who may start works may not say anything to all
		return intake{}, fmt.Errorf("%w: %q is amends' own; its instances are made by StartBatch", ErrUnknownSaga, sagaName)
	}
	return c.accepted(sagaName, work, input, o)
}

// accepted is accept, also of a saga of ours.
func (c *Coordinator) accepted(sagaName, work string, input any, o *saga.StartOptions) (intake, error) {
	if o == nil {
		o = &saga.StartOptions{}
	}
	in := intake{id: saga.ID{Saga: sagaName, Work: work}, revision: o.Revision, source: o.Source, cause: o.Cause, starter: strings.TrimSpace(o.Starter), later: o.NotBefore, nonce: rand.Int64()}
	in.program = c.newestProgram(sagaName)
	if in.program == nil {
		return in, errors.Join(fmt.Errorf("%w: %q", ErrUnknownSaga, sagaName), program.CheckWork(work))
	}
	var err error
	in.accepted, err = in.program.Accept(work, input)
	if fault := in.accepted.TagFault; fault != nil {
		c.opts.Log.WithError(fault).WithFields(logrus.Fields{"saga": sagaName, "work": work}).Warn("tags are left out: it is not found by them")
	}
	if time.Until(in.later) > saga.MaxWait {
		err = errors.Join(err, fmt.Errorf("NotBefore is %s, more than 100 years from now", in.later.UTC().Format(time.RFC3339)))
	}
	if in.starter == "" && in.accepted.ForStarter {
		err = errors.Join(err, errors.New("an approval of the saga is not its starter's: say who starts it, StartOptions.Starter"))
	}
	if err = errors.Join(err, saga.CheckRevision(in.revision)); err != nil {
		err = fmt.Errorf("%w:\n%w", ErrInvalid, err)
	}
	return in, err
}

// begin appends the start and answers. It returns the work that goes on here, and with what; nil: it does not. Once it was
// sent it does not end with the caller: what was stored runs.
func (c *Coordinator) begin(in intake, gone <-chan struct{}, first *starting, reply chan<- started) (_ *work, cmd machine.Command, ok bool) {
	s := c.current.Load()
	free := &session{}
	if s == nil {
		s = free
	}
	w := c.newWork(s, in.id, in.program)
	w.bytes = int64(len(in.accepted.Input))
	ours := s != free && s.trusted() == nil && c.hand.start(w)
	w.st.Steps = make([]machine.StepState, 0, min(4, len(w.spec().Steps)))
	d, a, err := c.appendStart(w, in, gone, ours)
	c.leave(&in, first, err == nil)
	r := started{exists: a.Result == ledger.Exists, err: err}
	if err == nil && !r.exists {
		r.summary = machine.Summarize(w.spec(), w.st)
	}
	goes := ours && err == nil && !r.exists && w.inHead
	if goes {
		reply <- r
		return w, d.Do, true
	}
	w.dropSlot() // a start that does not run here sends nothing here
	if s == free && err == nil && !r.exists {
		c.stir() // this process does not run
	}
	stays := ours && !w.letGo()
	if reply <- r; !stays {
		return nil, cmd, false
	}
	cmd, ok = w.again()
	return w, cmd, ok
}

// appendStart decides on and stores the first record. A work that this process does not hold is
// stored due now and armed by the process that claims it.
func (c *Coordinator) appendStart(w *work, in intake, gone <-chan struct{}, ours bool) (machine.Decision, ledger.Answer, error) {
	for arm := ours; ; arm = false {
		d, err := w.judge(machine.Event{
			Now: c.startsAt(), Slot: arm && !c.isStopping(), Secret: c.secrets.newest, Start: in.start(),
		})
		if err != nil {
			return d, ledger.Answer{}, err
		}
		e, err := startEntry(w, &d, ours && (d.Record.Dispatch != nil || !c.isStopping()))
		if err != nil {
			return d, ledger.Answer{}, errors.Join(errRefusedStart, err)
		}
		w.sent = time.Now()
		a, err := c.appendFirst(w, gone, &e)
		switch {
		case err != nil:
			return d, a, err
		case a.Result == ledger.NoLease && arm:
			c.loseSession(w.s, ledger.ErrSessionDead)
			ours = false
			continue
		case a.Result == ledger.Appended, a.Result == ledger.Mine:
			w.stored(d.Record, a, e.Schedule.Hold)
			return d, a, nil
		case a.Result == ledger.Exists:
			return d, a, nil
		default:
			return d, a, fmt.Errorf("the ledger did not take the start (%s): %w", a.Result, errors.Join(errRefusedStart, a.Err))
		}
	}
}

// startsAt is the ledger's clock, or before it was heard of this machine's, for how long a start waits that is for
// later: when it is due the ledger's clock is looked at again.
func (c *Coordinator) startsAt() machine.Moment {
	if c.clock.known() {
		return c.clock.now()
	}
	now := time.Now()
	return machine.Moment{Earliest: now, Latest: now}
}

// appendFirst appends the first record of a work, the same until there is an answer. While a
// transaction that is still open decides whether the work is new, it is asked again beside the
// other starts, after growing pauses; the slot it has is for others then.
func (c *Coordinator) appendFirst(w *work, gone <-chan struct{}, e *ledger.Entry) (ledger.Answer, error) {
	lane := c.starts
	for pause := blockedPause; ; pause = min(2*pause, longestPause) {
		a, err := lane.append(gone, w.s.token, e)
		if err != nil || a.Result != ledger.Blocked {
			return a, err
		}
		w.dropSlot()
		lane = c.contended
		switch err := nap.Until(c.life, gone, pause); {
		case errors.Is(err, nap.ErrWoken):
			return a, errWithdrawn
		case err != nil:
			return a, errors.Join(errRefusedStart, err)
		}
	}
}

// blockedPause is how long a start waits before it asks again whether the transaction in its way
// has ended, and longestPause what this grows to.
const (
	blockedPause = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

var errRefusedStart = errors.New("nothing was stored")

func startEntry(w *work, d *machine.Decision, hold bool) (ledger.Entry, error) {
	if w.salt == (machine.Salt{}) {
		_, _ = crand.Read(w.salt[:]) // it never fails
	}
	err := w.seal(d.Record)
	return ledger.Entry{
		ID: w.id, Salt: w.salt, Subject: ledger.SubjectOf(d.Record.Tags), Record: *d.Record, Schedule: &ledger.Schedule{Hold: hold, Class: class(w.st, d.Record)},
		Waits: w.findable(d.Record),
	}, err
}

// duplicate answers a start of a known work.
func (c *Coordinator) duplicate(ctx context.Context, in intake) (Started, error) {
	st, err := c.fold(ctx, in.id)
	if err != nil {
		return Started{}, fmt.Errorf("start %s: the work is known, but its state could not be read: %w", in.id, err)
	}
	sum, err := c.summarize(ctx, st)
	if err != nil {
		return Started{}, err
	}
	known := Started{Summary: sum, Duplicate: true, Stale: saga.CompareRevisions(in.revision, st.NewestRevision) < 0 && in.revision != ""}
	if st.RecordsGone && in.newer(st) {
		if first, err := heardLast(in.program, st); err != nil || first != in.accepted.Identity || !st.StandsWhole() {
			return known, fmt.Errorf("start %s at version %s: %w", in.id, in.revision, errors.Join(ErrForgotten, err))
		}
	} else if in.newer(st) {
		known.Duplicate, known.Revised = false, true
		return known, c.revise(ctx, &in)
	}
	c.countDuplicate(ctx, in)
	c.tell.duplicate(in.id, in.source)
	if known.Stale {
		return known, nil
	}
	first, err := heardLast(in.program, st)
	if err != nil || first == in.accepted.Identity {
		return known, nil //nolint:nilerr // an input that no longer decodes cannot be compared; it is not a conflict
	}
	c.tell.conflict(in.id, in.source)
	conflict := fmt.Errorf("start %s: %w (identity %s, first %s)", in.id, ErrConflict, in.accepted.Identity, first)
	if st.RecordsGone { // nothing can be noted there
		return known, conflict
	}
	return known, errors.Join(conflict, c.postConflict(ctx, &in, first))
}

// keptConflicts is how many starts with another identity are kept in a work's history. A source
// that adds a time to every redelivery sends one with each; further ones are counted as duplicates
// only.
const keptConflicts = 3

func (c *Coordinator) postConflict(ctx context.Context, in *intake, first string) error {
	kept, err := c.signals(ctx, in.id, func(s *machine.Signal) bool { return s.Kind == machine.SignalConflict })
	if err != nil || len(kept) >= keptConflicts {
		return err
	}
	_, err = c.ledger.Post(ctx, in.id, machine.Signal{
		Kind: machine.SignalConflict, Key: "conflict:" + in.accepted.Identity, Actor: in.source,
		Reason: fmt.Sprintf("identity %s, first %s", in.accepted.Identity, first),
	})
	return err
}

// StartTx stores a unit of work within the caller's own transaction on the same database: the work
// exists if and only if tx commits, and begins to move once a coordinator claims it, at its next
// poll. Nothing is armed within tx: a *sql.Tx or a *sqlx.Tx. It answers whether the work was new to
// the ledger. A newer revision of a known work is not taken within a transaction: Start it.
func (c *Coordinator) StartTx(ctx context.Context, tx ledger.Tx, sagaName, work string, input any, o *saga.StartOptions) (isNew bool, err error) {
	l, ok := c.Operator.ledger.(ledger.TxStarter)
	if !ok {
		return false, fmt.Errorf("start %s %s: this ledger lives in no database a transaction of yours could share", sagaName, work)
	}
	in, err := c.accept(sagaName, work, input, o)
	if err != nil {
		return false, err
	}
	w := c.newWork(&session{}, in.id, in.program)
	d, err := w.judge(machine.Event{Now: c.startsAt(), Start: in.start()})
	if err != nil {
		return false, err
	}
	e, err := startEntry(w, &d, false)
	if err != nil {
		return false, fmt.Errorf("start %s: %w", in.id, errors.Join(errRefusedStart, err))
	}
	a, err := l.StartTx(ctx, tx, e)
	switch {
	case err != nil:
		return false, fmt.Errorf("start %s: %w", in.id, err)
	case a.Result == ledger.Exists:
		c.duplicates.count(in.id, in.source)
		if !c.ran.Load() { // not at once: the caller's transaction may be in the way
			time.AfterFunc(flushEvery, c.flushDuplicates)
		}
		return false, nil
	case a.Result != ledger.Appended && a.Result != ledger.Mine:
		return false, fmt.Errorf("start %s: %w", in.id, errors.Join(errRefusedStart, a.Err))
	}
	return true, nil
}

// Wait blocks until the work has ended, is in review or paused, and returns its summary. Such a
// status is not final while an unread signal may still move the work: a resolution or a cancel
// about a review, a newer revision of a work that has ended. Wait then goes on until a coordinator
// has read the signal. It may be called in any process that reads the same ledger. What is not in
// hand here is asked about twice a second, in one statement for all that are waited for.
func (c *Coordinator) Wait(ctx context.Context, sagaName, work string) (saga.Summary, error) {
	id := saga.ID{Saga: sagaName, Work: work}
	for {
		if w := c.hand.holding(id); w != nil {
			select {
			case <-w.gone:
				if w.final != nil && !w.spoken.Load() {
					return *w.final, nil
				}
			case <-ctx.Done():
				return saga.Summary{}, fmt.Errorf("wait for %s: %w", id, ctx.Err())
			}
		}
		s, err := c.stand(ctx, id)
		if err != nil {
			return saga.Summary{}, fmt.Errorf("wait for %s: %w", id, err)
		}
		if (s.st.Status.Terminal() || s.st.Status.Parked()) && !c.movedBy(s.unread, s.st) {
			return c.summarize(ctx, s.st)
		}
		if err := c.await(ctx, id); err != nil {
			return saga.Summary{}, fmt.Errorf("wait for %s: %w", id, err)
		}
	}
}

// movedBy reports whether unread signals may still move a work at rest: news of its source, or a
// resolution on a step that could not be told, one that has ended; anything one in review.
func (c *Coordinator) movedBy(unread []machine.Signal, st *machine.State) bool {
	switch {
	case st.Status.Terminal():
		unconfirmed := len(st.Unconfirmed()) > 0
		return slices.ContainsFunc(unread, func(s machine.Signal) bool {
			return s.Revision != "" || unconfirmed && s.Kind == machine.SignalResolve
		})
	default:
		return len(unread) > 0
	}
}
