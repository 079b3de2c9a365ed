package coordinator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// farm renders films: a request is answered by a callback, hours later, twice, or never.
type farm struct {
	mu       sync.Mutex
	tokens   map[string]string // by work and revision
	ready    map[string]string // what a lookup finds, by work
	log      diary
	lose     bool // the answer to a request
	declines bool // what is read
	callback func(work, token string)
}

var farmSecret = []byte("0123456789abcdef0123456789abcdef")

// film is what a work is about.
type film struct {
	Title string `json:"title"`
}

// set changes how the farm behaves.
func (f *farm) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *farm) token(of string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tokens[of]
}

// saga is the one of these tests: it asks for a film, waits for it, and finishes.
func (f *farm) saga(t testing.TB, tune func(*saga.Answer[film, thing])) saga.Program {
	t.Helper()
	submit := func(_ context.Context, c saga.Call[film]) (thing, error) {
		f.log.note("submit " + c.Work)
		if err := c.Sending(); err != nil {
			return thing{}, err
		}
		f.mu.Lock()
		f.tokens[c.Work+c.Revision] = c.CallbackToken()
		lose, callback := f.lose, f.callback
		f.mu.Unlock()
		if callback != nil {
			callback(c.Work, c.CallbackToken())
		}
		if lose {
			return thing{}, errors.New("connection cut")
		}
		return thing{ID: "job-" + c.Work}, nil
	}
	cancel := func(_ context.Context, c saga.Call[film], made *thing) error {
		f.log.note("cancel " + c.Work)
		return nil
	}
	read := func(c saga.Call[film], m saga.Message) (thing, error) {
		var out thing
		f.mu.Lock()
		defer f.mu.Unlock()
		if err := json.Unmarshal(m.Body, &out); err != nil || out.ID == "" || f.declines {
			return out, errors.New("it names no film")
		}
		return out, nil
	}
	await := saga.Await("rendered", read).Callback("submit").On("render.done", func(c saga.Call[film]) string { return c.Work }).EachRun().Within(2*day, saga.Compensate)
	if tune != nil {
		tune(await)
	}
	d, err := saga.Define("film", 1,
		saga.Do("submit", submit).Keyed(90*day).EachRun().UndoMaybe(cancel).To("farm").Retry(saga.Retry{Initial: time.Second}),
		await,
		saga.Do("finish", func(_ context.Context, c saga.Call[film]) (thing, error) {
			f.log.note("finish " + c.Work + " " + c.ExternalID("rendered"))
			return thing{ID: "finished-" + c.Work}, nil
		}).Idempotent().NoUndo("it is a note").Pivot())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// find is a lookup of what is ready.
func (f *farm) find(_ context.Context, c saga.Call[film]) (saga.Finding[thing], error) {
	f.log.note("find " + c.Work)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch id := f.ready[c.Work]; id {
	case "":
		return saga.NotFound[thing](), nil
	case "failed":
		return saga.FoundFailed[thing]("no disk"), nil
	default:
		return saga.Found(thing{ID: id}), nil
	}
}

// filmScene plays a story about answers in virtual time.
type filmScene struct {
	*testing.T
	*farm

	ledger ledger.Ledger
	tune   func(*saga.Answer[film, thing])
	opts   coordinator.Options
}

func films(t *testing.T, play func(*filmScene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &farm{tokens: map[string]string{}, ready: map[string]string{}}
		play(&filmScene{T: t, farm: f, ledger: memory.New(nil), opts: coordinator.Options{CallbackSecrets: [][]byte{farmSecret}}})
	})
}

func (s *filmScene) boot() *process {
	p := several(s, s.ledger, config{opts: s.opts}, s.saga(s, s.tune))
	pass(time.Second)
	return p
}

// complete answers the request of a work with a film.
func (s *filmScene) complete(p *process, work, id string) {
	s.Helper()
	if _, err := p.Complete(s.Context(), s.token(work), ready(id)); err != nil {
		s.Error(err)
	}
	pass(time.Second)
}

func (s *filmScene) start(p *process, work, revision string) {
	s.Helper()
	if _, err := p.Start(s.Context(), "film", work, film{work + revision}, &saga.StartOptions{Revision: revision}); err != nil {
		s.Fatal(err)
	}
	pass(time.Second)
}

func (s *filmScene) want(p *process, work string, status saga.Status) saga.Summary {
	s.Helper()
	sum, err := p.Show(s.Context(), saga.ID{Saga: "film", Work: work})
	if err != nil || sum.Status != status {
		rs, _ := s.ledger.History(s.Context(), saga.ID{Saga: "film", Work: work})
		for _, r := range rs {
			s.Logf("%d %s %s %s %s %q", r.Seq, r.At, r.Kind, r.Step, r.Status, r.Said())
		}
		s.Fatalf("%s is %s %s (%v), want %s: %s", work, sum.Status, sum.Reason, err, status, sum.Next)
	}
	return sum
}

// count checks how often the farm was asked for something.
func (s *filmScene) count(what string, n int) {
	s.Helper()
	if at := s.log.of(what); len(at) != n {
		s.Errorf("%q happened %d times, want %d", what, len(at), n)
	}
}

// once checks that one answer is on record, and what followed from it. A process that is killed behind the request that follows
// leaves it to be sent again under its key.
func (s *filmScene) once(work string) {
	s.Helper()
	rs, err := s.ledger.History(s.Context(), saga.ID{Saga: "film", Work: work})
	if err != nil {
		s.Fatal(err)
	}
	n := 0
	for i := range rs {
		if rs[i].Step == "rendered" && (rs[i].Kind == "answered" || rs[i].Kind == "found") {
			n++
		}
	}
	if n != 1 || len(s.log.of("finish "+work+" film-"+work)) == 0 {
		s.Errorf("%s has %d answers on record, want 1, and went on %v", work, n, s.log.of("finish "+work+" film-"+work))
	}
}

func ready(id string) []byte { return fmt.Appendf(nil, `{"id":%q}`, id) }

// machine/A1, A9: a callback may come while its request is still on its way, while the work waits, and again. It ends the wait once, every
// genuine one is acknowledged as the first was, one that is the same is counted under its saga, and a forged
// one is not known. What the definition declines is told, and on record, and the work waits on.
func TestACallback(t *testing.T) {
	t.Parallel()
	films(t, func(s *filmScene) {
		p := s.boot()
		s.start(p, "a", "")
		s.want(p, "a", saga.Waiting)
		token := s.token("a")
		for _, body := range []string{"", "{}", "not JSON", "\x00\xff"} {
			if _, err := p.Complete(s.Context(), token, []byte(body)); !errors.Is(err, coordinator.ErrDeclined) {
				t.Errorf("%q: %v, want %v", body, err, coordinator.ErrDeclined)
			}
		}
		pass(time.Second)
		s.want(p, "a", saga.Waiting)
		for _, forged := range []string{"", "x", token[:len(token)-1], token + "x", strings.ToUpper(token)} {
			if _, err := p.Complete(s.Context(), forged, ready("f")); !errors.Is(err, coordinator.ErrUnknownToken) {
				t.Errorf("token %q: %v, want %v", forged, err, coordinator.ErrUnknownToken)
			}
		}
		first, err := p.Complete(s.Context(), token, ready("film-a"))
		if err != nil || first.At.IsZero() || !slices.Equal(first.IDs, []saga.ID{{Saga: "film", Work: "a"}}) {
			t.Fatalf("%+v, %v", first, err)
		}
		pass(time.Second)
		s.want(p, "a", saga.Completed)
		for _, again := range []func() (coordinator.Ack, error){
			func() (coordinator.Ack, error) { return p.Complete(s.Context(), token, ready("film-a")) },
			func() (coordinator.Ack, error) { return p.Complete(s.Context(), token, ready("another")) },
			func() (coordinator.Ack, error) { return p.Fail(s.Context(), token, "no disk") },
		} {
			pass(time.Hour)
			if ack, err := again(); err != nil || !ack.At.Equal(first.At) || ack.Failed {
				t.Errorf("acknowledged with %+v, %v, and first with %+v", ack, err, first)
			}
		}
		s.count("finish a film-a", 1)
		if days, err := s.ledger.BlockedDays(s.Context(), time.Time{}); err != nil || len(days) != 1 || days[0].By != ledger.ByAnswer || days[0].Source != "film" || days[0].Count != 1 {
			t.Errorf("of the one that came as it was before %+v are counted, %v", days, err)
		}

		s.set(func() {
			s.callback = func(work, token string) {
				if _, err := p.Complete(s.Context(), token, ready("film-"+work)); err != nil {
					t.Error(err)
				}
			}
		})
		s.start(p, "early", "")
		s.want(p, "early", saga.Completed)
		s.set(func() { s.lose = true })
		s.start(p, "lost", "")
		pass(time.Minute)
		s.want(p, "lost", saga.Retrying) // its request is sent again, under its key and with its token, until it is answered
		s.set(func() { s.lose = false })
		pass(time.Hour)
		s.want(p, "lost", saga.Completed)
		s.count("finish lost film-lost", 1)
	})
}

// machine/A4, A8, A10: no answer in time turns the work, a failure does so at once, a lookup makes a lost answer a delay, and a person has
// it wait longer.
func TestNoCallback(t *testing.T) {
	t.Parallel()
	films(t, func(s *filmScene) {
		p := s.boot()
		s.start(p, "silent", "")
		s.start(p, "failed", "")
		s.start(p, "longer", "")
		if _, err := p.Fail(s.Context(), s.token("failed"), "no disk"); err != nil {
			t.Fatal(err)
		}
		if err := p.Extend(s.Context(), saga.ID{Saga: "film", Work: "longer"}, "", time.Now().Add(5*day), anna); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		s.want(p, "failed", saga.Compensated)
		p.kill()
		pass(3 * day)
		p = s.boot()
		s.want(p, "silent", saga.Compensated)
		s.count("cancel silent", 1)
		s.want(p, "longer", saga.Waiting)
		p.kill()
		pass(3 * day)
		p = s.boot()
		s.want(p, "longer", saga.Compensated)
	})
	films(t, func(s *filmScene) {
		s.tune = func(a *saga.Answer[film, thing]) { a.Find(s.find).Poll(time.Hour).To("farm") }
		p := s.boot()
		s.start(p, "a", "")
		records := func() int {
			rs, err := s.ledger.History(s.Context(), saga.ID{Saga: "film", Work: "a"})
			if err != nil {
				t.Fatal(err)
			}
			return len(rs)
		}
		before := records()
		pass(5*time.Hour + 5*time.Minute)
		if n := len(s.log.of("find a")); n < 4 || n > 5 {
			t.Errorf("asked %d times in five hours, want every hour", n)
		}
		if after := records(); after != before {
			t.Errorf("lookups that learned nothing left %d records", after-before)
		}
		s.mu.Lock()
		s.ready["a"] = "film-a"
		s.mu.Unlock()
		pass(time.Hour + time.Minute)
		s.want(p, "a", saga.Completed)
		s.count("finish a film-a", 1)
	})
}

// A message that comes before anything waits for it, while it waits, by two waits at once, and again. It is used once.
func TestAMessage(t *testing.T) {
	t.Parallel()
	films(t, func(s *filmScene) {
		p := s.boot()
		m := saga.Message{Name: "render.done", Key: "a", ID: "evt_1", Body: ready("film-a")}
		deliver := func(m saga.Message) coordinator.Ack {
			t.Helper()
			ack, err := p.Deliver(s.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			return ack
		}
		early := deliver(m)
		if len(early.IDs) != 0 || early.At.IsZero() {
			t.Errorf("nothing waits yet, and %+v", early)
		}
		p.kill()
		pass(20 * day)
		p = s.boot()
		s.start(p, "a", "")
		s.want(p, "a", saga.Completed)
		if again := deliver(m); !again.At.Equal(early.At) {
			t.Errorf("acknowledged with %+v, and first with %+v", again, early)
		}
		m.Body = ready("another")
		if _, err := p.Deliver(s.Context(), m); !errors.Is(err, coordinator.ErrOtherMessage) {
			t.Errorf("%v, want %v", err, coordinator.ErrOtherMessage)
		}
		s.start(p, "b", "")
		if ack := deliver(saga.Message{Name: "render.done", Key: "b", ID: "evt_2", Body: ready("film-b")}); len(ack.IDs) != 1 {
			t.Errorf("%+v", ack)
		}
		pass(time.Second)
		s.want(p, "b", saga.Completed)
		s.start(p, "c", "")
		if _, err := p.Deliver(s.Context(), saga.Message{Name: "render.done", Key: "c", ID: "evt_3", Body: []byte("{}")}); !errors.Is(err, coordinator.ErrDeclined) {
			t.Errorf("%v, want %v", err, coordinator.ErrDeclined)
		}
		if err := p.CompleteStep(s.Context(), saga.ID{Saga: "film", Work: "c"}, "", ready("by-hand"), anna); err != nil {
			t.Error(err)
		}
		pass(time.Second)
		s.want(p, "c", saga.Completed)
		s.count("finish c by-hand", 1)
		s.start(p, "d", "")
		if err := p.CompleteStep(s.Context(), saga.ID{Saga: "film", Work: "d"}, "", make([]byte, 64<<10+1), anna); !errors.Is(err, ledger.ErrInvalid) {
			t.Errorf("%v, want %v", err, ledger.ErrInvalid)
		}
	})
}

// A source may bring a message instead of a change of an instance of its own; what it says twice is one.
func TestASourceBringsMessages(t *testing.T) {
	t.Parallel()
	films(t, func(s *filmScene) {
		p := s.boot()
		s.start(p, "a", "")
		render := func(body []byte) error {
			return p.Apply(s.Context(), saga.Change{
				ID: saga.ID{Saga: "film", Work: "farm:render:9"}, Revision: "3", Message: &saga.Message{Name: "render.done", Key: "a", Body: body},
			})
		}
		for _, body := range []string{"{}", `{"id":"film-a"}`, `{"id":"film-a"}`} {
			if err := render([]byte(body)); err != nil && !errors.Is(err, coordinator.ErrOtherMessage) {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		s.want(p, "a", saga.Waiting) // what its first word was, it is
		if err := p.Apply(s.Context(), saga.Change{ID: saga.ID{Work: "farm:render:" + strings.Repeat("9", 240)}, Revision: strings.Repeat("1", 30), Message: &saga.Message{Name: "render.done", Key: "a", Body: ready("film-a")}}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		s.want(p, "a", saga.Completed)
		if _, err := p.Show(s.Context(), saga.ID{Saga: "film", Work: "farm:render:9"}); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("the message is an instance: %v", err)
		}
	})
}

// One who has the token can fill neither the history nor the ledger: what is declined comes again as it was, and after 32
// different ones no more are put on record. What is acknowledged is.
func TestAFloodOfAnswers(t *testing.T) {
	t.Parallel()
	films(t, func(s *filmScene) {
		p := s.boot()
		for _, work := range []string{"declined", "answered"} {
			s.start(p, work, "")
			id := saga.ID{Saga: "film", Work: work}
			if work == "answered" {
				s.complete(p, work, "film")
			}
			for i := range 100 {
				_, err := p.Complete(s.Context(), s.token(work), fmt.Appendf(nil, "no answer %d", i))
				if (work == "answered") != (err == nil) || err != nil && !errors.Is(err, coordinator.ErrDeclined) {
					t.Errorf("%s, answer %d: %v", work, i, err)
				}
			}
			pass(time.Minute)
			rs, err := s.ledger.History(s.Context(), id)
			if err != nil || work == "declined" && len(rs) > 45 || work == "answered" && len(rs) < 100 {
				t.Errorf("%s: a hundred answers left %d records (%v)", work, len(rs), err)
			}
		}
		s.want(p, "answered", saga.Completed)
		s.want(p, "declined", saga.Waiting)
		s.complete(p, "declined", "film")
		s.want(p, "declined", saga.Completed)
	})
}

// What was declined may be sent again once the definition is mended, and counts then.
func TestADeclinedAnswerComesAgain(t *testing.T) {
	t.Parallel()
	films(t, func(s *filmScene) {
		p := s.boot()
		s.start(p, "called", "")
		s.start(p, "told", "")
		say := func() (errs []error) {
			_, called := p.Complete(s.Context(), s.token("called"), ready("film"))
			_, told := p.Deliver(s.Context(), saga.Message{Name: "render.done", Key: "told", ID: "1", Body: ready("film")})
			pass(time.Second)
			return []error{called, told}
		}
		s.set(func() { s.declines = true })
		for range 3 {
			for _, err := range say() {
				if !errors.Is(err, coordinator.ErrDeclined) {
					t.Errorf("%v, want %v", err, coordinator.ErrDeclined)
				}
			}
		}
		s.set(func() { s.declines = false })
		for _, err := range say() {
			if err != nil {
				t.Error(err)
			}
		}
		s.want(p, "called", saga.Completed)
		s.want(p, "told", saga.Completed)
	})
}

// What comes in where no definition is known is read by the process that has it: one that it declines then keeps no later answer
// away, however many there were.
func TestAnswersThatNothingReadWhereTheyCameIn(t *testing.T) {
	t.Parallel()
	films(t, func(s *filmScene) {
		p := s.boot()
		s.start(p, "called", "")
		s.start(p, "told", "")
		op := coordinator.NewOperator(s.ledger)
		for i := range 40 {
			if _, err := op.Complete(s.Context(), s.token("called"), fmt.Appendf(nil, "%d per cent", i)); err != nil {
				t.Fatal(err)
			}
			if _, err := op.Deliver(s.Context(), saga.Message{Name: "render.done", Key: "told", ID: fmt.Sprint(i), Body: []byte("{}")}); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		if _, err := op.Complete(s.Context(), s.token("called"), ready("film")); err != nil {
			t.Fatal(err)
		}
		if _, err := op.Deliver(s.Context(), saga.Message{Name: "render.done", Key: "told", ID: "last", Body: ready("film")}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		s.want(p, "called", saga.Completed)
		s.want(p, "told", saga.Completed)
	})
}

// Two steps wait for messages of one name and key, one after the other: each has one. A message that an older version waited for
// ends no wait of a newer one.
func TestMessagesAreForOneWaitEach(t *testing.T) {
	t.Parallel()
	films(t, func(s *filmScene) {
		read := func(_ saga.Call[film], m saga.Message) (thing, error) { return thing{ID: string(m.Body)}, nil }
		key := func(c saga.Call[film]) string { return c.Input.Title }
		d, err := saga.Define("film", 1,
			saga.Do("begin", func(context.Context, saga.Call[film]) (thing, error) { return thing{ID: "b"}, nil }).Idempotent().NoUndo("a test"),
			saga.Await("first", read).On("part", key).EachRun().Within(day, saga.Compensate),
			saga.Await("second", read).On("part", key).EachRun().Within(day, saga.Compensate))
		if err != nil {
			t.Fatal(err)
		}
		p := several(s, s.ledger, config{opts: s.opts}, d)
		pass(time.Second)
		deliver := func(key, id string) {
			t.Helper()
			if _, err := p.Deliver(s.Context(), saga.Message{Name: "part", Key: key, ID: id, Body: []byte(id)}); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		deliver("early", "1") // both before anything waits
		deliver("early", "2")
		s.start(p, "early", "")
		s.want(p, "early", saga.Completed)

		begin := func(work, title, revision string) {
			t.Helper()
			if _, err := p.Start(s.Context(), "film", work, film{title}, &saga.StartOptions{Revision: revision}); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		begin("a", "one", "1")
		begin("a", "other", "2") // a wait for a message alone ends at once
		deliver("one", "3")
		s.want(p, "a", saga.Waiting)
		deliver("other", "4")
		s.want(p, "a", saga.Waiting)
		deliver("other", "5")
		if sum := s.want(p, "a", saga.Completed); sum.Steps["first"].ExternalID != "4" || sum.Steps["second"].ExternalID != "5" {
			t.Errorf("%+v", sum.Steps)
		}
	})
}

// When the destination of the lookup is away, the wait ends all the same, soon after its time.
func TestAnOutageKeepsNoAnswer(t *testing.T) {
	t.Parallel()
	films(t, func(s *filmScene) {
		s.tune = func(a *saga.Answer[film, thing]) {
			a.Find(func(context.Context, saga.Call[film]) (saga.Finding[thing], error) {
				return saga.Finding[thing]{}, errors.New("connection refused")
			}).To("elsewhere")
		}
		p := s.boot()
		s.start(p, "a", "")
		p.kill()
		pass(2 * day)
		p = s.boot()
		pass(2 * time.Hour)
		if sum := s.want(p, "a", saga.Review); sum.Reason != saga.ReasonUnanswered {
			t.Errorf("it is a review, %s", sum.Reason)
		}
		rs, err := s.ledger.History(s.Context(), saga.ID{Saga: "film", Work: "a"})
		if err != nil || len(rs) > 25 {
			t.Errorf("%d records (%v)", len(rs), err)
		}
	})
}

// machine/A3, A5, A6: a newer version waits for the job of the older, and for an answer of its own then. A success that comes late is not
// dropped.
func TestLateAnswers(t *testing.T) {
	t.Parallel()
	films(t, func(s *filmScene) {
		p := s.boot()
		s.start(p, "a", "1")
		s.start(p, "a", "2")
		s.want(p, "a", saga.Waiting)
		s.count("submit a", 1)
		s.complete(p, "a1", "old")
		pass(time.Minute)
		s.count("submit a", 2)
		s.want(p, "a", saga.Waiting)
		if s.token("a1") == s.token("a2") {
			t.Error("two revisions have one token")
		}
		s.complete(p, "a1", "older")
		s.want(p, "a", saga.Waiting)
		s.complete(p, "a2", "new")
		s.want(p, "a", saga.Completed)

		s.start(p, "known", "1")
		if err := p.Cancel(s.Context(), saga.ID{Saga: "film", Work: "known"}, anna); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		s.set(func() { s.lose = true })
		s.start(p, "blind", "1")
		if err := p.Cancel(s.Context(), saga.ID{Saga: "film", Work: "blind"}, anna); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Minute)
		for _, work := range []string{"known", "blind"} {
			s.want(p, work, saga.Compensated)
			s.complete(p, work+"1", "late")
		}
		pass(time.Second)
		s.want(p, "known", saga.Compensated)
		if sum := s.want(p, "blind", saga.Review); sum.Reason != saga.ReasonLate {
			t.Errorf("%+v", sum)
		}
		if err := p.Resume(s.Context(), saga.ID{Saga: "film", Work: "blind"}, anna); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		s.want(p, "blind", saga.Compensated)
	})
}

// A storm: a thousand doubles of one callback, by two processes, beside kills. One resume, equal acknowledgements.
func TestAStormOfCallbacks(t *testing.T) {
	t.Parallel()
	films(t, func(s *filmScene) {
		p, q := s.boot(), s.boot()
		s.start(p, "a", "")
		acks := make([]coordinator.Ack, 1000)
		var all sync.WaitGroup
		for i := range acks {
			all.Go(func() {
				var err error
				if acks[i], err = []*process{p, q}[i%2].Complete(s.Context(), s.token("a"), ready("film-a")); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for _, ack := range acks {
			if !ack.At.Equal(acks[0].At) {
				t.Fatalf("acknowledged with %+v and %+v", ack, acks[0])
			}
		}
		pass(time.Second)
		s.want(p, "a", saga.Completed)
		s.count("finish a film-a", 1)
		p.kill()
		q.kill()
	})
}

// A process that ends at any call of the ledger's about what comes from outside loses neither a callback nor a message, and sends no
// request whose callback would not be known.
func TestAnswersAcrossCrashes(t *testing.T) {
	t.Parallel()
	for _, method := range []ledgertest.Method{ledgertest.Await, ledgertest.Messages, ledgertest.Use, ledgertest.Post, ledgertest.Append} {
		for n := 1; n <= 4; n++ {
			for what, fault := range map[string]ledgertest.Fault{
				"before": ledgertest.CrashBefore(n, method), "during": ledgertest.CrashDuring(n, method), "lost": ledgertest.LoseAnswer(n, method),
			} {
				t.Run(fmt.Sprint(method, n, what), func(t *testing.T) {
					t.Parallel()
					films(t, func(s *filmScene) {
						inner := s.ledger
						if _, err := coordinator.NewOperator(inner).Deliver(s.Context(), saga.Message{Name: "render.done", Key: "early", ID: "1", Body: ready("film-early")}); err != nil {
							t.Fatal(err)
						}
						faulty := ledgertest.Faulty(inner, fault)
						s.ledger = faulty
						p := s.boot()
						for _, work := range []string{"early", "called"} {
							ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
							_, _ = p.Start(ctx, "film", work, film{work}, nil)
							cancel()
						}
						pass(time.Minute)
						select {
						case <-faulty.Crashed():
							p.kill()
						default:
						}
						s.ledger = inner
						q := s.boot()
						for _, work := range []string{"early", "called"} { // whoever got no answer starts it again
							s.start(q, work, "")
						}
						pass(time.Minute)
						if token := s.token("called"); token == "" {
							t.Fatal("nothing was asked for")
						} else if _, err := q.Complete(s.Context(), token, ready("film-called")); err != nil {
							t.Fatal(err)
						}
						pass(time.Minute)
						for _, work := range []string{"early", "called"} {
							s.want(q, work, saga.Completed)
							s.once(work)
						}
					})
				})
			}
		}
	}
}

// A fail-over forgets what was stored last: the request, the wait, and by what it is found. The request is sent again under its key,
// with its token, and the wait is findable again. A callback that was acknowledged and forgotten is found by the lookup.
func TestAnswersAfterAFailOver(t *testing.T) {
	t.Parallel()
	films(t, func(s *filmScene) {
		s.tune = func(a *saga.Answer[film, thing]) { a.Find(s.find).Poll(time.Hour).To("farm") }
		db := memory.New(nil)
		s.ledger = db
		p := s.boot()
		s.start(p, "first", "")
		early := db.Backup()
		s.start(p, "a", "")
		before := s.token("first")
		db.FailOver(early)
		pass(5 * time.Minute)
		s.want(p, "first", saga.Waiting)
		s.start(p, "a", "") // its caller starts it again
		pass(5 * time.Minute)
		s.want(p, "a", saga.Waiting)
		if s.token("first") != before {
			t.Error("the token is another one")
		}
		late := db.Backup()
		for _, work := range []string{"first", "a"} {
			s.complete(p, work, "film-"+work)
			s.mu.Lock()
			s.ready[work] = "film-" + work
			s.mu.Unlock()
		}
		db.FailOver(late)
		pass(2 * time.Hour)
		for _, work := range []string{"first", "a"} {
			s.want(p, work, saga.Completed)
			s.once(work)
		}
	})
}

// A fail-over within the step before a request, which forgets nothing, puts the request into doubt before it was ever sent: it is sent with
// its token, and answered by it.
func TestARequestBehindAFailOverHasItsToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, token := memory.New(nil), ""
		prepare := func(context.Context, saga.Call[film]) (thing, error) {
			db.FailOver(db.Backup())
			return thing{ID: "p"}, nil
		}
		submit := func(_ context.Context, c saga.Call[film]) (thing, error) {
			token = c.CallbackToken()
			return thing{ID: "job"}, nil
		}
		read := func(saga.Call[film], saga.Message) (thing, error) { return thing{ID: "done"}, nil }
		d, err := saga.Define("film", 1,
			saga.Do("prepare", prepare).Idempotent().NoUndo("a test"),
			saga.Do("submit", submit).Keyed(90*day).Once().NoUndo("a test"),
			saga.Await("rendered", read).Callback("submit").Within(2*day, saga.Compensate))
		if err != nil {
			t.Fatal(err)
		}
		p := several(t, db, config{opts: coordinator.Options{CallbackSecrets: [][]byte{farmSecret}}}, d)
		pass(time.Second)
		id := saga.ID{Saga: "film", Work: "a"}
		if _, err := p.Start(t.Context(), id.Saga, id.Work, film{}, nil); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Minute)
		if s, err := p.Show(t.Context(), id); err != nil || s.Status != saga.Waiting || token == "" {
			t.Fatalf("it is %s %s, with the token %q (%v)", s.Status, s.Reason, token, err)
		}
		if _, err := p.Complete(t.Context(), token, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if s, err := p.Show(t.Context(), id); err != nil || s.Status != saga.Completed {
			t.Errorf("it is %s (%v)", s.Status, err)
		}
	})
}

// Two processes know different versions of the definition: what one declines the version that the instance has decides.
func TestAnswersWithTwoVersions(t *testing.T) {
	t.Parallel()
	films(t, func(s *filmScene) {
		p := s.boot()
		s.start(p, "a", "")
		other, err := saga.Define("film", 2, saga.Do("submit", func(context.Context, saga.Call[film]) (thing, error) { return thing{}, nil }).Idempotent().NoUndo("none"))
		if err != nil {
			t.Fatal(err)
		}
		q := several(s, s.ledger, config{opts: s.opts}, other)
		pass(time.Second)
		if ack, err := q.Complete(s.Context(), s.token("a"), []byte("{}")); err != nil || ack.At.IsZero() { // it has no definition to read it with
			t.Errorf("%+v, %v", ack, err)
		}
		pass(time.Second)
		s.want(p, "a", saga.Waiting)
		s.complete(q, "a", "film-a")
		s.want(p, "a", saga.Completed)
		p.kill()
		q.kill()
	})
}

// What a person holds takes its answer, and stays where it is until it is resumed. When its time passed meanwhile nothing is undone:
// a person is asked.
func TestAnswersToWhatIsHeld(t *testing.T) {
	t.Parallel()
	films(t, func(s *filmScene) {
		p := s.boot()
		for _, work := range []string{"answered", "silent"} {
			s.start(p, work, "")
			if err := p.Pause(s.Context(), saga.ID{Saga: "film", Work: work}, anna); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Second)
		s.complete(p, "answered", "film")
		p.kill()
		pass(3 * day)
		p = s.boot()
		for _, work := range []string{"answered", "silent"} {
			s.want(p, work, saga.Paused)
			if err := p.Resume(s.Context(), saga.ID{Saga: "film", Work: work}, anna); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Minute)
		s.want(p, "answered", saga.Completed)
		if sum := s.want(p, "silent", saga.Review); sum.Reason != saga.ReasonUnanswered {
			t.Errorf("%+v", sum)
		}
	})
}

// machine/A2: a secret that was changed makes new tokens; what the old one made is still known, and a request that is sent again carries
// the same.
func TestSecretsChange(t *testing.T) {
	t.Parallel()
	films(t, func(s *filmScene) {
		p := s.boot()
		s.start(p, "a", "")
		s.set(func() { s.lose = true })
		s.start(p, "b", "")
		before := s.token("b")
		p.kill()
		s.set(func() { s.lose = false })
		s.opts.CallbackSecrets = [][]byte{[]byte("another secret of these tests"), farmSecret}
		p = s.boot()
		pass(10 * time.Minute)
		if s.token("b") != before {
			t.Error("a request that is sent again under its key carries another token")
		}
		for _, work := range []string{"a", "b"} {
			s.complete(p, work, "film-"+work)
		}
		pass(time.Second)
		s.want(p, "a", saga.Completed)
		s.want(p, "b", saga.Completed)
		s.start(p, "c", "")
		if strings.SplitN(s.token("c"), ".", 2)[0] == strings.SplitN(before, ".", 2)[0] {
			t.Error("a new request carries a token of the old secret")
		}
	})
	films(t, func(s *filmScene) { // a secret that is gone: nothing is sent, and no token is one
		p := s.boot()
		s.set(func() { s.lose = true })
		s.start(p, "a", "")
		p.kill()
		before := len(s.log.of("submit a"))
		s.opts.CallbackSecrets = [][]byte{[]byte("another secret of these tests")}
		p = s.boot()
		pass(10 * time.Minute)
		if sum := s.want(p, "a", saga.Review); sum.Reason != saga.ReasonPoison || !strings.Contains(sum.Steps["submit"].Error, "CallbackSecrets") {
			t.Errorf("%+v", sum)
		}
		s.count("submit a", before)
		if _, err := p.Complete(s.Context(), "", ready("forged")); !errors.Is(err, coordinator.ErrUnknownToken) {
			t.Errorf("%v, want %v", err, coordinator.ErrUnknownToken)
		}
	})
	c, err := coordinator.New(memory.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Register(t.Context(), (&farm{}).saga(t, nil)); err == nil || !strings.Contains(err.Error(), "CallbackSecrets") {
		t.Errorf("registered without a secret: %v", err)
	}
	if _, err := coordinator.New(memory.New(nil), &coordinator.Options{CallbackSecrets: [][]byte{[]byte("short")}}); err == nil {
		t.Error("a secret of five bytes is taken")
	}
}

// Rule: an answer that comes in through a process that runs a coordinator reaches the next step at once, not with the next poll, and its
// record arms it: that costs no other commit.
func TestAnAnswerReachesItsStepAtOnce(t *testing.T) {
	t.Parallel()
	films(t, func(s *filmScene) {
		p := s.boot()
		for i := range 20 {
			work := fmt.Sprint("w", i)
			if _, err := p.Start(s.Context(), "film", work, film{work}, nil); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			pass(time.Duration(50+i) * time.Millisecond) // it is in hand
			if i%2 > 0 {
				pass(quick().Hold) // it has left the hand
			}
			began := time.Now()
			s.complete(p, work, "film-"+work)
			pass(100 * time.Millisecond)
			if took := s.log.first("finish "+work+" film-"+work, began); took > 50*time.Millisecond {
				t.Errorf("%s: the next step began %s behind the answer", work, took)
			}
			rs, err := s.ledger.History(t.Context(), saga.ID{Saga: "film", Work: work})
			if i := slices.IndexFunc(rs, func(r machine.Record) bool { return r.Kind == machine.KindAnswered }); err != nil || i < 0 || rs[i].Dispatch == nil {
				t.Errorf("%s: the answer's record arms nothing: %v, %v", work, rs, err)
			}
		}
	})
}

// Rule: the first answer costs one load where it comes in, and none where it is waited for. What was posted elsewhere before is read
// first.
func TestTheFirstAnswerIsReadOnce(t *testing.T) {
	t.Parallel()
	films(t, func(s *filmScene) {
		calls := ledgertest.Faulty(s.ledger)
		s.ledger = calls
		p := s.boot()
		reads := func() int { return calls.Calls(ledgertest.Load) }
		s.start(p, "w1", "")
		pass(70 * time.Millisecond) // at no poll
		before, posts := reads(), calls.Calls(ledgertest.Post)
		if _, err := p.Complete(s.Context(), s.token("w1"), ready("film-w1")); err != nil {
			s.Error(err)
		}
		synctest.Wait()
		if n, posted := reads()-before, calls.Calls(ledgertest.Post)-posts; n != 1 || posted != 1 {
			s.Errorf("an answer took %d loads and %d posts, want one of each", n, posted)
		}
		s.want(p, "w1", saga.Completed)
		s.start(p, "w2", "")
		pass(70 * time.Millisecond)
		if err := coordinator.NewOperator(s.ledger).Pause(s.Context(), saga.ID{Saga: "film", Work: "w2"}, saga.Actor{Name: "ann", Reason: "wait"}); err != nil {
			s.Fatal(err)
		}
		s.complete(p, "w2", "film-w2")
		rs, err := s.ledger.History(s.Context(), saga.ID{Saga: "film", Work: "w2"})
		if err != nil {
			s.Fatal(err)
		}
		var said []int64
		for i := range rs {
			said = append(said, rs[i].Signals...)
		}
		if !slices.Equal(said, []int64{1, 2}) {
			s.Errorf("records consumed %v, want what was posted elsewhere first", said)
		}
	})
}

// Rule: what stays in hand for an answer that may come soon takes a quarter of the places at most, and none from what can go on.
func TestWhatWaitsForAnAnswerLeavesPlaces(t *testing.T) {
	t.Parallel()
	films(t, func(s *filmScene) {
		s.opts.MaxWorks = 8
		p := s.boot()
		began := time.Now()
		for i := range 40 {
			if _, err := p.Start(s.Context(), "film", fmt.Sprint("w", i), film{fmt.Sprint("w", i)}, nil); err != nil {
				t.Fatal(err)
			}
		}
		for got := 0; got < 40; pass(100 * time.Millisecond) {
			if got = in(s, s.ledger, "film")[saga.Waiting]; time.Since(began) > 4*time.Second {
				t.Fatalf("%d of 40 have sent their requests within %s", got, time.Since(began))
			}
		}
	})
}
