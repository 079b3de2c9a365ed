package sqlstore

import (
	"context"
	"errors"
	"time"

	"github.com/amends-dev/amends/store/internal/batch"
)

// together answers questions that are asked at the same time by one call: who asks while a call is under way is in the next.
type together[Q, A any] struct {
	calls *batch.Group[*asked[Q, A]]
	call  func(context.Context, []Q) ([]A, error)
}

// asked is one question, and its answer.
type asked[Q, A any] struct {
	question Q
	answer   A
}

const (
	mostAsked = 100              // questions of one call
	patience  = 10 * time.Second // for which a call may be under way; who waits for it may leave earlier
)

// newTogether makes so many calls at a time at most. call answers each question at its own index.
func newTogether[Q, A any](writers int, call func(context.Context, []Q) ([]A, error)) *together[Q, A] {
	t := &together[Q, A]{call: call}
	t.calls = batch.New(writers, mostAsked, func(*asked[Q, A]) int { return 1 }, func(calls []*batch.Call[*asked[Q, A]]) {
		ctx, cancel := batch.Context(calls, patience)
		defer cancel()
		t.answer(ctx, calls)
	})
	return t
}

// answer answers calls at once and, when that fails, in halves, so that one that cannot be answered fails no other.
func (t *together[Q, A]) answer(ctx context.Context, calls []*batch.Call[*asked[Q, A]]) {
	questions := make([]Q, len(calls))
	for i, c := range calls {
		questions[i] = c.Work.question
	}
	answers, err := t.call(ctx, questions)
	if half := len(calls) / 2; half > 0 && err != nil && ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
		t.answer(ctx, calls[:half])
		t.answer(ctx, calls[half:])
		return
	}
	for i, c := range calls {
		if err == nil {
			c.Work.answer = answers[i]
		}
		c.Answer(err)
	}
}

// ask waits for the answer, or until ctx ends. Who asked the same at the same time has the very same answer.
func (t *together[Q, A]) ask(ctx context.Context, question Q) (none A, err error) {
	a := &asked[Q, A]{question: question}
	if err := t.calls.Do(ctx, a); err != nil {
		return none, err
	}
	return a.answer, nil
}

// Asked are the statements of these calls that read, in the words of a database, which may prepare them.
func Asked(words map[string]string) []string {
	d := &Dialect{Words: words}
	return []string{unburied, d.Text(load), d.Text(signals), d.Text(findWaits)}
}

// Told are those of the calls that write.
func Told(words map[string]string) []string {
	d := &Dialect{Words: words}
	return []string{d.Text(addWaits), d.Text(readNow), addBlocked}
}
