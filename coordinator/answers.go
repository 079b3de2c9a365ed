package coordinator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/nap"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// What comes from outside for the instances that wait for it (see [saga.Await]).

// Ack says what became of an answer.
type Ack struct {
	At     time.Time // when it came first, by the ledger's clock
	Failed bool      // what it says: that what was waited for has failed
	IDs    []saga.ID // for which instances it was; a message may come before anything waits for it
}

// Errors of answers.
var (
	// ErrUnknownToken: no request carried this token. Nothing was stored.
	ErrUnknownToken = errors.New("no such token")
	// ErrDeclined: the definition declines it as an answer. That is on record, and the instance waits on.
	ErrDeclined = errors.New("it is declined as an answer")
	// ErrBehind: so many answers to the same request are on record that another one is not. Nothing was stored: bring it again
	// when they are read.
	ErrBehind = errors.New("more answers came to this request than are kept: bring it again")
	// ErrBroken: the definition failed to read it, which is its fault. It is on record, and a person is asked.
	ErrBroken = errors.New("its definition could not read it, and it is on record: a person is asked")
	// ErrOtherMessage: another message has its id. Nothing was stored.
	ErrOtherMessage = errors.New("another message has this id")
)

// MessageLife is how long a message is kept for an instance to wait for it, and how long its id is known.
const MessageLife = 30 * 24 * time.Hour

// Complete brings the answer to the request that carried token. Every genuine token is acknowledged, also one that was used, or
// comes late, with its first answer; what came is on record. A token of no request matches [ErrUnknownToken]; an answer that
// the definition declines [ErrDeclined].
func (op *Operator) Complete(ctx context.Context, token string, body []byte) (Ack, error) {
	if len(body) > program.MaxAnswer {
		return Ack{}, fmt.Errorf("complete: %w: the answer has %d bytes; at most %d are allowed", ledger.ErrInvalid, len(body), program.MaxAnswer)
	}
	return op.answer(ctx, "complete", token, machine.Said{Body: body})
}

// Fail says that what the request asked for that carried token has failed, and that nothing of it stands. why is for people.
// It is acknowledged as an answer that [Operator.Complete] brings.
func (op *Operator) Fail(ctx context.Context, token, why string) (Ack, error) {
	if why = program.Clean(strings.TrimSpace(why), 1024); why == "" {
		why = "it failed, and did not say why"
	}
	return op.answer(ctx, "fail", token, machine.Said{Failed: why})
}

// ownMessages is how the messages begin that amends sends itself: it sends them again until they are used.
const ownMessages = "amends-"

// blocked counts what a layer has blocked of a source: a coordinator gathers it, so that a storm of one answer costs one statement a second.
func (op *Operator) blocked(ctx context.Context, by, source string) {
	if op.counts != nil {
		op.counts(ctx, by, source)
		return
	}
	_ = op.ledger.Blocked(ctx, by, source, 1) // as far as the ledger takes it
}

// mostAnswers is how many different answers to one request are put on record that its definition declines where they come in, and
// mostKept how many bytes of all others, each with answerSize besides, while one of them may be the answer, or is.
const (
	mostAnswers = 32
	mostKept    = 1 << 20
	answerSize  = 1 << 10
)

func (op *Operator) answer(ctx context.Context, verb, token string, said machine.Said) (Ack, error) {
	if token == "" {
		return Ack{}, fmt.Errorf("%s: %w", verb, ErrUnknownToken)
	}
	waits, err := op.ledger.Waits(ctx, "", digestOf(token))
	if err != nil {
		return Ack{}, fmt.Errorf("%s: %w", verb, err)
	}
	if len(waits) == 0 {
		return Ack{}, fmt.Errorf("%s: %w", verb, ErrUnknownToken)
	}
	w := &waits[0]
	sum := sha256.Sum256(append([]byte(w.StepKey+"\x00"+said.Failed+"\x00"), said.Body...))
	sig := machine.Signal{
		Kind: machine.SignalAnswer, Key: "answer:" + hex.EncodeToString(sum[:16]), Actor: "callback",
		Resolution: saga.Resolution{Step: w.Step, StepKey: w.StepKey}, Said: said,
	}
	ack, declined, err := op.acknowledge(ctx, w, &sig)
	switch {
	case errors.Is(err, ledger.ErrNotFound): // it is not there any more
		err = fmt.Errorf("%s: %w", verb, ErrUnknownToken)
	case err != nil:
		err = fmt.Errorf("%s %s: %w", verb, w.ID, err)
	case declined != "":
		err = fmt.Errorf("%s %s: %w: %s", verb, w.ID, ErrDeclined, declined)
	}
	return ack, err
}

// acknowledge puts an answer on record, unless it is there, and returns the acknowledgement of the first one, or why this one
// is declined.
func (op *Operator) acknowledge(ctx context.Context, w *ledger.Wait, sig *machine.Signal) (ack Ack, declined string, err error) {
	s, err := op.stand(ctx, w.ID)
	if err != nil {
		return ack, "", err
	}
	var before []machine.Signal
	if s.posted > 0 { // most answers are the first thing that is said to their instance
		if before, err = op.answers(ctx, w); err != nil {
			return ack, "", err
		}
	}
	same := slices.ContainsFunc(before, func(s machine.Signal) bool { return s.Key == sig.Key })
	if s.st.RecordsGone { // it has ended long since, and what was said has gone
		op.blocked(ctx, ledger.ByAnswer, w.ID.Saga)
		return Ack{At: s.st.Updated, IDs: []saga.ID{w.ID}}, "", nil
	}
	switch ack = firstOf(w, before); {
	case s.answered(w, before) == nil: // so far none of them is the answer
	case same:
		op.blocked(ctx, ledger.ByAnswer, w.ID.Saga)
		return ack, "", nil
	case size(before) > mostKept:
		return Ack{}, "", ErrBehind
	default:
		_, err = op.post(ctx, w.ID, *sig)
		return ack, "", err
	}
	if same { // it was declined, and may be no more: its definition was mended
		sig.Key += fmt.Sprintf(":%d", len(before))
	}
	p, declined, err := op.hand(ctx, s.st, w, sig, !same && len(before) < mostAnswers)
	if err != nil || declined != "" {
		return Ack{}, declined, err
	}
	if p.Number == s.posted+1 { // nothing came in between
		sig.At = p.At
		return firstOf(w, append(before, *sig)), "", nil
	}
	before, err = op.answers(ctx, w)
	return firstOf(w, before), "", err
}

// answered is the one of the answers that counts or may, or any where the wait is over; nil: none does.
func (s *standing) answered(w *ledger.Wait, answers []machine.Signal) *machine.Signal {
	ss := s.st.Step(w.Step)
	over := s.st.Compensating || s.st.Status.Terminal() || ss != nil && (ss.Forward.Phase == machine.Done || len(ss.Answering().HeldAnswers) > 0)
	for i := range answers {
		if a := &answers[i]; a.Declined == "" && (over || s.isUnread(a)) { // one that was read, while the wait goes on, was declined
			return a
		}
	}
	return nil
}

// isUnread reports whether no record has consumed an answer, also one that came after s was read.
func (s *standing) isUnread(a *machine.Signal) bool {
	return a.ID > s.posted || slices.ContainsFunc(s.unread, func(u machine.Signal) bool { return u.ID == a.ID })
}

// size is how much the answers are.
func size(answers []machine.Signal) (bytes int) {
	for i := range answers {
		bytes += answerSize + len(answers[i].Body) + len(answers[i].Failed)
	}
	return bytes
}

// answers are those to one request that came so far.
func (op *Operator) answers(ctx context.Context, w *ledger.Wait) ([]machine.Signal, error) {
	return op.signals(ctx, w.ID, func(s *machine.Signal) bool {
		return s.Kind == machine.SignalAnswer && s.Step == w.Step && s.StepKey == w.StepKey
	})
}

// firstOf is the acknowledgement of the first answer that was not declined where it came in.
func firstOf(w *ledger.Wait, answers []machine.Signal) Ack {
	for i := range answers {
		if a := &answers[i]; a.Declined == "" {
			return Ack{At: a.At, Failed: a.Failed != "", IDs: []saga.ID{w.ID}}
		}
	}
	return Ack{}
}

// hand posts an answer to the instance that waits for it, with what its definition says of it, where this process knows it. One
// that is declined is put on record only if that is wanted; one that cannot be read always is, and is an [ErrBroken].
func (op *Operator) hand(ctx context.Context, st *machine.State, w *ledger.Wait, sig *machine.Signal, declines bool) (p ledger.Posted, declined string, err error) {
	r := &machine.Read{}
	if def := op.programs(st); def != nil && sig.Failed == "" && awaited(def.Spec(), st, w) {
		r = readAnswer(def, st, sig.Step, messageOf(sig))
		if sig.Declined = r.Declined; r.Declined != "" && !declines {
			return p, r.Declined, nil
		}
	}
	if p, err = op.post(ctx, w.ID, *sig); err == nil && r.Fault != "" {
		err = fmt.Errorf("%w: %s\n%s", ErrBroken, r.Fault, r.Stack)
	}
	return p, r.Declined, err
}

// awaited reports whether an answer can be read now: the step may still be answered, and its request is done.
func awaited(spec *program.Spec, st *machine.State, w *ledger.Wait) bool {
	i := spec.Index(w.Step)
	return i >= 0 && spec.Steps[i].WaitsForAnswer() && st.Open(w.Step) && (w.Name != "" || st.Requested(&spec.Steps[i]))
}

// Deliver brings a message to what waits for its name and key: in each saga to the wait that is oldest and whose definition does not
// decline it. It is used once in each saga. While nothing takes it, it is kept for [MessageLife], whether it came early or late. What
// was given up or cancelled takes nothing from what waits; where nothing does, a message that only such an instance can be meant by (its
// key is its work id, or an external id that no other has) reaches a person through it.
//
// A message that comes again, by its id, is acknowledged as the first was; another one with its id matches [ErrOtherMessage]. Where
// every definition that is asked declines it, the error matches [ErrDeclined].
func (op *Operator) Deliver(ctx context.Context, m saga.Message) (ack Ack, err error) {
	defer func() {
		if err != nil {
			ack, err = Ack{}, fmt.Errorf("deliver message %q, id %q: %w", m.Name, m.ID, err)
		}
	}()
	message := program.Message(m)
	kept, err := op.ledger.Keep(ctx, message, MessageLife)
	if err != nil {
		return ack, err
	}
	if kept.Other {
		return ack, ErrOtherMessage
	}
	if kept.Again && !strings.HasPrefix(m.Name, ownMessages) {
		op.blocked(ctx, ledger.ByAnswer, "") // it may be several sagas', or none's
	}
	uses, err := op.ledger.Uses(ctx, m.Name, m.ID)
	if err != nil {
		return ack, err
	}
	ack.At = kept.At
	for i := range uses {
		ack.IDs = append(ack.IDs, uses[i].ID)
	}
	ids, no, err := op.offer(ctx, &message, saga.ID{}, uses)
	if ack.IDs = append(ack.IDs, ids...); err == nil && len(ack.IDs) == 0 && no != "" {
		err = fmt.Errorf("%w: %s", ErrDeclined, no)
	}
	return ack, err
}

// offer brings a message to what waits for it in the sagas that do not use it, and to none of what was given up while another waits.
// from is the work that does not use it itself: it is offered to the others of its saga, once, and what they cannot read is theirs.
func (op *Operator) offer(ctx context.Context, m *program.Message, from saga.ID, uses []ledger.Wait) (ids []saga.ID, declined string, err error) {
	waits, err := op.ledger.Waits(ctx, m.Name, m.Key)
	if err != nil || len(waits) == 0 {
		return nil, "", err
	}
	named, err := op.named(ctx, m)
	if err != nil {
		return nil, "", err
	}
	taken, failed := make(map[string]bool), make(map[string]error) // by saga
	for i := range uses {
		taken[uses[i].ID.Saga] = true
	}
	for _, given := range []bool{false, true} {
		for i := range waits {
			w := &waits[i]
			if taken[w.ID.Saga] || w.ID == from || from.Saga != "" && from.Saga != w.ID.Saga || w.Ended && !given ||
				given && (failed[w.ID.Saga] != nil || !means(m, w.ID, named)) {
				continue
			}
			no, got, err := op.deliver(ctx, w, m, given, from.Saga != "")
			switch {
			case errors.Is(err, errUnfolded): // no work waits for another that cannot be loaded
			case errors.Is(err, ErrBroken), errors.Is(err, ErrBehind): // nor one saga for another; what is broken is on record
				taken[w.ID.Saga], failed[w.ID.Saga] = errors.Is(err, ErrBroken), err
			case err != nil:
				return nil, "", err
			case got:
				ids, taken[w.ID.Saga] = append(ids, w.ID), true
				delete(failed, w.ID.Saga)
			case no != "":
				declined = no
			}
		}
	}
	if from.Saga == "" {
		err = errors.Join(slices.Collect(maps.Values(failed))...)
	}
	return ids, declined, err
}

// insist loads a work again that could not be loaded. When that fails for a while, and the ledger answers what is asked next, it is the
// chain that is at fault.
func (op *Operator) insist(ctx context.Context, w *ledger.Wait, err error) (*standing, error) {
	for wait := 50 * time.Millisecond; wait < 2*time.Second; wait *= 2 {
		if errors.Is(err, errUnfolded) || nap.For(ctx, wait) != nil {
			return nil, err
		}
		var s *standing
		if s, err = op.stand(ctx, w.ID); err == nil {
			return s, nil
		}
	}
	if _, away := op.ledger.Waits(ctx, w.Name, w.Key); away == nil {
		err = fmt.Errorf("%w: %w", errUnfolded, err)
	}
	return nil, err
}

// deliver posts a message to one instance, unless its wait is over by now, which was left behind.
func (op *Operator) deliver(ctx context.Context, w *ledger.Wait, m *program.Message, given, again bool) (declined string, got bool, err error) {
	s, err := op.stand(ctx, w.ID)
	if errors.Is(err, ledger.ErrNotFound) {
		return "", false, op.ledger.Unwait(ctx, []ledger.Wait{*w})
	}
	if err != nil && again {
		s, err = op.insist(ctx, w, err)
	}
	if err != nil {
		return "", false, err
	}
	live, gone := lives(s.st, w.Step), gaveUp(s.st, w.Step)
	switch {
	case s.st.RecordsGone || w.StepKey != waitKey(s.st, w.Step) || !live && !gone:
		return "", false, op.ledger.Unwait(ctx, []ledger.Wait{*w})
	case gone != given:
		return "", false, nil
	}
	before, err := op.answers(ctx, w)
	if err != nil {
		return "", false, err
	}
	sig := messageSignal(m, w.Step, w.StepKey)
	n := times(before, sig.Key)
	unread := slices.DeleteFunc(slices.Clone(s.unread), func(u machine.Signal) bool { return u.Declined != "" })
	switch {
	case (live || !again) && (times(unread, sig.Key) > 0 || s.holds(w.Step, m)):
		return "", true, nil // who reads it offers it again, if it does not use it
	case again && n > 0 && (live || n > 2): // it was asked before
		return "", false, nil
	case size(before) > mostKept:
		return "", false, ErrBehind
	}
	sig.Key += suffix(n) // it may have been declined, and be no more: its definition was mended
	_, declined, err = op.hand(ctx, s.st, w, &sig, n == 0 && len(before) < mostAnswers)
	return declined, declined == "" && err == nil, err
}

// holds reports whether a step holds a message that its definition could not read.
func (s *standing) holds(step string, m *program.Message) bool {
	ss := s.st.Step(step)
	return ss != nil && slices.ContainsFunc(ss.Answering().HeldAnswers, func(h program.Message) bool { return h.Name == m.Name && h.ID == m.ID })
}

// named are instances, two at most, that have a message's key as an external id.
func (op *Operator) named(ctx context.Context, m *program.Message) ([]ledger.Instance, error) {
	return ledger.First(ctx, op.ledger, ledger.Filter{ExternalID: m.Key, Limit: 2})
}

// means reports whether a message can mean only this instance: it says its work id, or an external id that no other has.
func means(m *program.Message, id saga.ID, named []ledger.Instance) bool {
	return m.Key == id.Work || len(named) == 1 && named[0].ID == id
}

// CompleteStep answers by hand what a step waits for, "" the one that waits: as if body had come from outside. The definition reads
// it when a coordinator takes it up, and what it declines is on record.
func (op *Operator) CompleteStep(ctx context.Context, id saga.ID, step string, body []byte, by saga.Actor) error {
	return op.answerStep(ctx, "complete", id, step, machine.Said{Body: body}, by)
}

// FailStep says by hand that what a step waits for, "" the one that waits, has failed, and that nothing of it stands.
func (op *Operator) FailStep(ctx context.Context, id saga.ID, step string, by saga.Actor) error {
	return op.answerStep(ctx, "fail", id, step, machine.Said{Failed: by.Reason}, by)
}

func (op *Operator) answerStep(ctx context.Context, verb string, id saga.ID, step string, said machine.Said, by saga.Actor) error {
	if len(said.Body) > program.MaxAnswer {
		return fmt.Errorf("%s %s: %w: the answer has %d bytes; at most %d are allowed", verb, id, ledger.ErrInvalid, len(said.Body), program.MaxAnswer)
	}
	return op.order(ctx, id, verb, by, func(s *standing) (act machine.Choice, sig machine.Signal, err error) {
		sum := sha256.Sum256([]byte(said.Failed + "\x00" + string(said.Body)))
		act, sig = machine.Choice{Verb: verb}, machine.Signal{Kind: machine.SignalAnswer, Key: ":" + hex.EncodeToString(sum[:8]), Said: said}
		ss, err := s.waitsAt(step)
		switch {
		case err != nil:
			return act, sig, err
		case ss.Ballot() != nil:
			return act, sig, fmt.Errorf("%w: people decide at step %q. %s", ErrNotAsking, ss.Name, s.next())
		}
		sig.Step = ss.Name
		if p := op.programs(s.st); p != nil && said.Failed == "" {
			switch r := readAnswer(p, s.st, sig.Step, messageOf(&sig)); {
			case r.Fault != "":
				return act, sig, fmt.Errorf("its definition cannot read it: %s", r.Fault)
			case r.Declined != "":
				return act, sig, fmt.Errorf("%w: %s", ErrDeclined, r.Declined)
			}
		}
		return act, sig, nil
	})
}

// Extend has a step, "" the one that waits, wait for its answer, or for a decision of people, until a time by the ledger's clock, also when it is in review because
// none came.
func (op *Operator) Extend(ctx context.Context, id saga.ID, step string, until time.Time, by saga.Actor) error {
	return op.order(ctx, id, "extend", by, func(s *standing) (machine.Choice, machine.Signal, error) {
		act := machine.Choice{Verb: machine.VerbExtend}
		ss, err := s.waitsAt(step)
		if err == nil && !until.After(s.at) {
			err = fmt.Errorf("%w: %s has passed", ErrChangesNothing, until.UTC().Format(time.RFC3339))
		}
		if err != nil {
			return act, machine.Signal{}, err
		}
		return act, machine.Signal{
			Kind: machine.SignalExtend, Key: ":" + until.UTC().Format(time.RFC3339), Resolution: saga.Resolution{Step: ss.Name}, Said: machine.Said{Until: until.UTC()},
		}, nil
	})
}

// waitsAt is the step that waits for an answer or for a decision; step is its name, or "".
func (s *standing) waitsAt(step string) (*machine.StepState, error) {
	ss := s.st.Awaited()
	if ss == nil || step != "" && step != ss.Name {
		return nil, fmt.Errorf("%w: it is %s. %s", ErrNotAsking, s.is(), s.next())
	}
	return ss, nil
}
