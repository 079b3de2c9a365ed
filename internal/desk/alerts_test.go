package desk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/ledgertest"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/internal/program"
	"github.com/amends-dev/amends/reconcile/schedule"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// recovers is a store in memory as a whole one, of which the jobs may not be read.
type recovers struct {
	*memory.DB
	ledgertest.Keeps

	broken bool
}

func (r recovers) Jobs(ctx context.Context) (schedule.Board, error) {
	if r.broken {
		return schedule.Board{}, errors.New("no answer")
	}
	return r.DB.Jobs(ctx)
}

func (recovers) Recover(context.Context, ledger.Recovery) (ledger.Recovered, error) {
	return ledger.Recovered{}, nil
}

func (recovers) StartTx(context.Context, ledger.Tx, ledger.Entry) (ledger.Answer, error) {
	return ledger.Answer{}, nil
}

// What needs people is told once each: approvals when a quarter of their time is left, and again when they are twice as many; a job whose
// latest run left to a person what it would have done. What is healthy needs none, and what cannot
// be read hides nothing else.
func TestNeeds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := memory.New(nil)
		log := logrus.New()
		log.SetLevel(logrus.PanicLevel)
		p, err := saga.Define("payment", 1, saga.Approve[int]("pay").By("finance").Votes(1).Within(40*time.Minute),
			saga.Do("charge", func(context.Context, saga.Call[int]) (struct{}, error) { return struct{}{}, nil }).Idempotent().NoID().NoUndo("it is a test"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := coordinator.New(db, &coordinator.Options{Log: log})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Register(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		result, takes := schedule.OK, time.Duration(0)
		jobs, err := schedule.New(db, []schedule.Job{{Name: "orders", Schedule: "@every 5m", Work: func(context.Context, *schedule.Run) (schedule.Outcome, error) {
			time.Sleep(takes) //nolint:forbidigo // virtual time
			return schedule.Outcome{Result: result, Note: "40 would be voided"}, nil
		}}}, &schedule.Options{Log: log})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		go func() { ended <- c.Run(ctx) }()
		go func() { ended <- jobs.Run(ctx) }()
		pass := func(d time.Duration) {
			time.Sleep(d) //nolint:forbidigo // virtual time
			synctest.Wait()
		}
		needs := func() (all []string) {
			found, partial, err := New(recovers{db, ledgertest.Keeps{}, false}, "").Needs(t.Context(), 3)
			if err != nil || len(partial) > 0 {
				t.Fatal(partial, err)
			}
			for _, a := range found {
				if a.Kind != "witness" { // memory has none
					all = append(all, fmt.Sprint(a.About, " ", a.Count))
				}
			}
			return all
		}
		start := func(n int) {
			if _, err := c.Start(t.Context(), "payment", fmt.Sprint(n), n, nil); err != nil {
				t.Fatal(err)
			}
		}
		start(1)
		pass(6 * time.Minute)
		start(2)
		if got := needs(); len(got) != 0 {
			t.Errorf("while all is well: %q", got)
		}
		pass(26 * time.Minute)
		if got := needs(); !slices.Equal(got, []string{"approval/payment/pay 1"}) {
			t.Errorf("with one near its end: %q", got)
		}
		result = schedule.Refused
		pass(6 * time.Minute)
		if got := needs(); !slices.Equal(got, []string{"job/orders 1", "approval/payment/pay 2", "approval/payment/pay/2 2"}) {
			t.Errorf("with two: %q", got)
		}
		found, partial, err := New(recovers{db, ledgertest.Keeps{}, true}, "").Needs(t.Context(), 3)
		told := func(a Alert) bool { return a.About == "approval/payment/pay" }
		if err == nil || !slices.Equal(partial, []string{"job/"}) || !slices.ContainsFunc(found, told) {
			t.Errorf("where jobs cannot be read: %+v, partly %q, %v", found, partial, err)
		}
		takes = 11 * time.Minute
		for range 12 {
			pass(time.Minute)
			if got := needs(); !slices.Contains(got, "job/orders 1") {
				t.Errorf("while its next run goes on, and another is left out: %q", got)
			}
		}
		stop()
		<-ended
		<-ended
	})
}

// A source whose duplicates jump is an alert of its own, also where another one of the layer always has far more, which is none. What it is
// about can be a work id, whatever the source is called. It is the same one behind midnight, and is over a day later.
func TestDuplicatesOfOneSourceJump(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := memory.New(nil)
		block := func(by, source string, n int64) {
			if err := db.Blocked(t.Context(), by, source, n); err != nil {
				t.Fatal(err)
			}
		}
		for range 7 {
			block(ledger.ByReceiver, "shop", 5000)
			block(ledger.ByReceiver, "till", 10)
			time.Sleep(24 * time.Hour) //nolint:forbidigo // virtual time
		}
		block(ledger.ByReceiver, "shop", 6000)
		block(ledger.ByReceiver, "till", 150)
		block(ledger.ByVersion, "till", 99)
		block(ledger.ByRequest, "", 100)
		block(ledger.ByStart, "a\n"+strings.Repeat("z", ledger.MaxText-2), 100)
		found, _, err := New(recovers{db, ledgertest.Keeps{}, false}, "").Needs(t.Context(), 3)
		if err != nil {
			t.Fatal(err)
		}
		words := map[string]string{}
		for _, a := range found {
			if err := program.CheckWork(a.About + "@1000"); err != nil {
				t.Errorf("%q: %v", a.About, err)
			}
			if a.Kind == "duplicates" {
				words[strings.ReplaceAll(a.About, "z", "")] = strings.ReplaceAll(a.Words, "z", "")
			}
		}
		if want := map[string]string{
			"duplicates/receiver/till": "150 duplicates from till were blocked on 2000-01-08 by receiver, and 10 a day in the week before",
			"duplicates/request":       "100 duplicates from an unnamed source were blocked on 2000-01-08 by request, and 0 a day in the week before",
			`duplicates/start/a\n…`:    `100 duplicates from a\n… were blocked on 2000-01-08 by start, and 0 a day in the week before`,
		}; !maps.Equal(words, want) {
			t.Errorf("got  %q\nwant %q", words, want)
		}
		time.Sleep(24*time.Hour + time.Minute) //nolint:forbidigo // virtual time
		for day, wants := range []int{3, 0} {
			found, _, err := New(recovers{db, ledgertest.Keeps{}, false}, "").Needs(t.Context(), 3)
			if n := number(found, func(a *Alert) bool { return a.Kind == "duplicates" }); n != wants || err != nil {
				t.Errorf("%d days later: %d, %v", day+1, n, err)
			}
			time.Sleep(24 * time.Hour) //nolint:forbidigo // virtual time
		}
	})
}

// Webhooks that were refused are counted by source and reason beside the deliveries, and alert when they jump. They are no duplicates.
func TestRefusedWebhooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := memory.New(nil)
		for range 2 {
			if err := db.Blocked(t.Context(), intake.ByRefusal("wrong_signature"), "shop", 150); err != nil {
				t.Fatal(err)
			}
			time.Sleep(24 * time.Hour) //nolint:forbidigo // virtual time
		}
		if err := db.Blocked(t.Context(), intake.ByRefusal("wrong_signature"), "shop", 3000); err != nil {
			t.Fatal(err)
		}
		d := New(recovers{db, ledgertest.Keeps{}, false}, "")
		found, _, err := d.Needs(t.Context(), 3)
		found = slices.DeleteFunc(found, func(a Alert) bool { return a.Kind != "refused" })
		if err != nil || len(found) != 1 || found[0].About != "refused/wrong_signature/shop" || found[0].Next != "amends inbox counts" ||
			found[0].Words != "3000 webhooks for shop were refused on 2000-01-03 (wrong_signature), and 42 a day in the week before" {
			t.Errorf("needs %+v, %v", found, err)
		}
		counts, err := d.Counts(t.Context(), nil)
		if err != nil || len(counts.Items) != 1 || counts.Items[0].Became() != "refused: wrong_signature" || counts.Items[0].Count != 3300 {
			t.Errorf("counts %+v, %v", counts, err)
		}
		duplicates, err := d.Duplicates(t.Context(), &DuplicatesIn{Limit: Limit{N: 10}})
		if err != nil || len(duplicates.Days) != 0 {
			t.Errorf("duplicates %+v, %v", duplicates, err)
		}
	})
}

// moves is a store whose works come to a list, or leave it, once a list was read.
type moves struct {
	recovers

	heads map[saga.Status][]ledger.Instance
	move  func()
}

func (m *moves) List(_ context.Context, f ledger.Filter) (p ledger.Page, err error) {
	for status, heads := range m.heads {
		for _, h := range heads {
			if (f.Status == "" || f.Status == status) && !h.Updated.Before(f.UpdatedSince) && (f.UpdatedUntil.IsZero() || h.Updated.Before(f.UpdatedUntil)) {
				p.Instances = append(p.Instances, h)
			}
		}
	}
	if m.move != nil {
		m.move()
		m.move = nil
	}
	return p, nil
}

func (m *moves) Load(context.Context, []saga.ID) ([]ledger.Chain, error) { return nil, nil }

func (m *moves) History(context.Context, saga.ID) ([]machine.Record, error) {
	at := time.Date(1999, 11, 1, 0, 0, 0, 0, time.UTC)
	return []machine.Record{{At: at, Status: saga.Running}, {At: at, Status: saga.Review}, {At: time.Now(), Status: saga.Completed}}, nil
}

// Alerts that cannot be told are told of by one, however many they are.
func TestAlertsInReview(t *testing.T) {
	t.Parallel()
	stuck := func(work string) ledger.Instance {
		return ledger.Instance{ID: saga.ID{Saga: AlertSaga, Work: work}, Status: saga.Review, Step: "tell", Reason: saga.ReasonPoison}
	}
	m := &moves{recovers: recovers{memory.New(nil), ledgertest.Keeps{}, false}, heads: map[saga.Status][]ledger.Instance{saga.Review: {stuck("job/a@1"), stuck("job/b@1")}}}
	all, _, err := New(m, "").Needs(t.Context(), 3)
	all = slices.DeleteFunc(all, func(a Alert) bool { return a.Kind != "review" })
	if err != nil || len(all) != 1 || all[0].About != "review/amends-alert/tell/poison" || all[0].Count != 2 {
		t.Errorf("%+v, %v", all, err)
	}
}

// What is at no step has no filter of its own where others are at one.
func TestAGroupThatNoFilterSelects(t *testing.T) {
	t.Parallel()
	at := func(work, step string) ledger.Instance {
		return ledger.Instance{ID: saga.ID{Saga: "s", Work: work}, Status: saga.Review, Step: step, Reason: saga.ReasonDeadline}
	}
	m := &moves{recovers: recovers{memory.New(nil), ledgertest.Keeps{}, false}, heads: map[saga.Status][]ledger.Instance{saga.Review: {at("1", ""), at("2", "pay"), at("3", "pay")}}}
	g, err := New(m, "").Groups(t.Context(), new(GroupsIn))
	if err != nil || len(g.Items) != 2 || g.Items[1].Filter != nil || !slices.Contains(g.Items[0].Filter, "step=pay") || !slices.Contains(g.Items[0].Filter, "error==") {
		t.Errorf("%+v, %v", g, err)
	}
}

// A work that rested when the month began, and moves while the report is made, is in it once.
func TestAMonthHasWhatMovesMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rests := ledger.Instance{ID: saga.ID{Saga: "s", Work: "1"}, Status: saga.Review, Updated: time.Date(1999, 11, 1, 0, 0, 0, 0, time.UTC)}
		moved := rests
		moved.Status, moved.Updated = saga.Completed, time.Now()
		m := &moves{recovers: recovers{memory.New(nil), ledgertest.Keeps{}, false}, heads: map[saga.Status][]ledger.Instance{saga.Review: {rests}}}
		m.move = func() { m.heads = map[saga.Status][]ledger.Instance{saga.Completed: {moved}} }
		out, err := New(m, "").Month(t.Context(), &MonthIn{Month: "1999-12"})
		if err != nil || len(out.Items) != 1 || out.Items[0].Live != 1 || out.Items[0].ReviewsOpen != 1 {
			t.Errorf("%+v, %v", out, err)
		}
	})
}
