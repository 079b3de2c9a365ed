package machine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/saga"
)

// source is the source object: it changes, changes back to what it was for us, is cancelled and
// restored. What it says arrives late, in any order, twice, or never; what it said last is told
// again in the end.
type source struct {
	revision int
	content  int // rises with every change that matters to us
	gone     bool
	history  []Signal
	news     []Signal // on their way
}

// change makes the next version of the object and returns it.
func (s *source) change() json.RawMessage {
	s.revision++
	s.content++
	return s.input()
}

func (s *source) input() json.RawMessage { return json.RawMessage(strconv.Itoa(s.content)) }

// content is which content of the source object an input is.
func content(input json.RawMessage) int {
	n, err := strconv.Atoi(string(input))
	if err != nil {
		panic(err)
	}
	return n
}

// moves lets something happen to the object, and the news of it go on their way.
func (s *source) moves(w *world) {
	switch {
	case s.gone: // restored, as it was or otherwise
		s.gone = false
		s.revision++
		if w.chance(50, "restored otherwise") {
			s.content++
		}
	case w.chance(30, "the source cancels"):
		s.gone = true
		s.revision++
	case w.chance(30, "a change that is nothing to us"):
		s.revision++
	default:
		s.change()
	}
	s.history = append(s.history, s.says())
	for range rapid.SampledFrom([]int{1, 1, 1, 0, 2}).Draw(w.t, "copies") {
		s.news = append(s.news, s.says())
	}
}

// says is what the source says of the object now.
func (s *source) says() Signal {
	sig := Signal{Kind: SignalRevise, News: News{Revision: strconv.Itoa(s.revision), Version: 1, Input: s.input()}}
	if s.gone {
		sig.Kind, sig.News = SignalCancel, News{Revision: sig.Revision}
	}
	return sig
}

// tellLast tells again what the source said last.
func (s *source) tellLast() { s.news = append(s.news, s.says()) }

// hear takes one of the news that are on their way, or an old one again.
func (w *world) hear() Signal {
	s := &w.source
	if len(s.history) > 0 && w.chance(10, "an old one again") {
		return rapid.SampledFrom(s.history).Draw(w.t, "old news")
	}
	i := 0
	if !w.quiet {
		i = rapid.IntRange(0, len(s.news)-1).Draw(w.t, "which news")
	}
	sig := s.news[i]
	s.news = append(s.news[:i:i], s.news[i+1:]...)
	return sig
}

// same reports whether input says the same as the one that was heard before.
func (w *world) same(input json.RawMessage) bool {
	before := w.st.Input
	if w.st.PendingRevision != nil && !w.st.PendingRevision.Withdrawn {
		before = w.st.PendingRevision.Input
	}
	return string(before) == string(input)
}

// forgets is a fail-over: the database forgets the latest records, and every process is another one
// since. It does not forget that the work turned or began a revision, nor anything about an undo,
// nor the new key that a person allowed for a Keyed step: that is a stated limit. Signals survive.
func (w *world) forgets() bool {
	n := min(rapid.IntRange(0, 3).Draw(w.t, "forgotten records"), len(w.chain)-1)
	lost := w.chain[len(w.chain)-n:]
	if slices.ContainsFunc(lost, w.limit) {
		return false
	}
	if w.last.Do.Do == Act {
		w.dies()
	}
	for i := range lost {
		for _, id := range lost[i].Signals {
			w.unread = append(w.unread, w.said[id-1])
		}
	}
	w.pass(w.span(time.Minute, "until the fail-over"))
	w.diary = append(w.diary, fmt.Sprintf("%s the database forgets %d records", clock(w.now), n))
	if err := w.rewind(n); err != nil {
		w.t.Fatal(err)
	}
	changed := w.now
	w.pass(w.span(time.Minute, "the fail-over takes"))
	w.feedSafe(Event{Changed: changed, Unread: len(w.unread) > 0})
	return true
}

// limit reports whether forgetting r is more than the machine is made for.
func (w *world) limit(r Record) bool {
	newKey := r.Kind == KindResolved && r.ErrorClass == saga.Unsent && w.spec.Steps[w.spec.Index(r.Step)].Repeat == program.RepeatKeyed
	return newKey || r.Kind == KindRevised || r.Direction == saga.Undo || r.Dispatch != nil && r.Dispatch.Direction == saga.Undo || r.Kind == KindCancelled || r.Status == saga.Compensating || r.Status == saga.Compensated
}

// dies lets the process die in the middle of the attempt that it was told to make.
func (w *world) dies() {
	r, deadline := w.request()
	w.leave(r, deadline, rapid.SampledFrom([]string{"crash before", "crash behind", "crash with a late answer"}).Draw(w.t, "fate at the fail-over"))
}
