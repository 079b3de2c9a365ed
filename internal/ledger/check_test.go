package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
)

// A sound ledger has no findings, and every work and record of it was looked at.
func TestCheckSound(t *testing.T) {
	t.Parallel()
	report, err := ledger.Check(t.Context(), soundBook(t), nil)
	if err != nil || len(report.Findings) > 0 {
		t.Fatalf("findings %v and error %v, want none", report.Findings, err)
	}
	if report.Works != 4 || report.Records != 10 || report.Moving != 0 {
		t.Errorf("looked at %d works and %d records, want 4 and 10", report.Works, report.Records)
	}
}

// What is due later than the clock can explain is reported, and so is a session that was renewed
// later.
func TestCheckFindsWhatIsAheadOfTheClock(t *testing.T) {
	t.Parallel()
	b := soundBook(t)
	b.overview.At = b.head(waits).Updated.Add(-time.Hour)
	b.overview.Ahead.Sessions = []ledger.Session{{Token: 7, Label: "host 1", Renewed: b.overview.At.Add(time.Hour)}}
	report, err := ledger.Check(t.Context(), b, nil)
	if err != nil || len(report.Findings) != 2 {
		t.Fatalf("findings %v and error %v, want the session and the work", report.Findings, err)
	}
	if f := report.Findings[0]; f.Where() != "the ledger" || !strings.Contains(f.What, "host 1") {
		t.Errorf("the first says %s", f)
	}
	if f := report.Findings[1]; f.ID != waits || !strings.Contains(f.What, "the clock has gone back") {
		t.Errorf("the second says %s", f)
	}
	b.overview = ledger.Overview{At: b.head(waits).Updated} // what waits for its time was written by this clock
	if report, err := ledger.Check(t.Context(), b, nil); err != nil || len(report.Findings) > 0 {
		t.Errorf("findings %v and error %v, want none", report.Findings, err)
	}
}

// Every kind of damage is found, at its place, and nowhere else.
func TestCheckFindsDamage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		damage func(b *book)
		id     saga.ID
		seq    int64
		says   string
	}{
		// Chains.
		{"a record edited", func(b *book) { b.records[done][1].ExternalID = "cus_2" }, done, 2, "it was edited"},
		{"a body edited", func(b *book) { b.records[done][0].Body = []byte(`{}`) }, done, 1, "it was edited"},
		{"a hash edited", func(b *book) { b.records[done][4].Hash[0] ^= 1 }, done, 5, "it was edited"},
		{"a record edited and its hash with it", func(b *book) {
			b.records[done][1].ExternalID = "cus_2"
			b.records[done][1].Hash = b.records[done][1].Sum(done, machine.Salt{}, b.records[done][0].Hash)
		}, done, 3, "belongs to another chain"},
		{"a foreign tail", func(b *book) { b.records[waits][1] = b.records[review][1] }, waits, 2, "belongs to another chain"},
		{"a record lost", func(b *book) { b.records[done] = slices.Delete(b.records[done], 1, 2) }, done, 3, "There is a gap: after record 1 comes record 3."},
		{"the first record lost", func(b *book) { b.records[done] = b.records[done][1:] }, done, 2, "after record 0"},
		{"a fork", func(b *book) { b.records[done] = slices.Insert(b.records[done], 2, b.records[done][1]) }, done, 2, "The chain forks"},
		{"all records lost", func(b *book) { b.records[done] = nil }, done, 0, "no record"},

		// What the machine allows.
		{"a step that was never armed", func(b *book) {
			b.records[done][1].Step = "ghost"
			b.reseal(done, 1)
		}, done, 2, "never armed"},
		{"a step armed twice", func(b *book) {
			b.records[done][3].Dispatch.Step = "customer"
			b.reseal(done, 1)
		}, done, 4, "cannot have written"},
		{"a snapshot of another state", func(b *book) {
			s := string(b.records[done][3].Snapshot)
			b.records[done][3].Snapshot = []byte(strings.Replace(s, "cus_1", "cus_2", 1))
			b.reseal(done, 3)
		}, done, 4, "not the fold"},
		{"a snapshot that does not decode", func(b *book) {
			b.records[done][3].Snapshot = []byte(`[`)
			b.reseal(done, 3)
		}, done, 4, "does not decode"},

		// Heads.
		{"the tail lost", func(b *book) { b.records[waits] = b.records[waits][:1] }, waits, 1, `status "retrying", the chain says "running"`},
		{"another reason", func(b *book) { b.head(review).Reason = saga.ReasonPoison }, review, 2, `reason "poison", the chain says "in-doubt"`},
		{"another version", func(b *book) { b.head(waits).Version = 2 }, waits, 1, "definition version"},
		{"another revision", func(b *book) { b.head(waits).Revision = "r2" }, waits, 1, "revision"},
		{"another base", func(b *book) { b.head(done).Base = 1 }, done, 4, `base "1", the chain says "4"`},
		{"another finish", func(b *book) { b.head(done).Finished = time.Unix(1, 0) }, done, 5, "1970-01-01T00:00:01Z"},
		{"no finish", func(b *book) { b.head(done).Finished = time.Time{} }, done, 5, "no time"},
		{"finished too early", func(b *book) { b.head(waits).Finished = time.Unix(1, 0) }, waits, 2, "is retrying and yet"},
		{"never due", func(b *book) { b.head(waits).Due = time.Time{} }, waits, 0, "wait for ever"},
		{"held and due", func(b *book) { b.head(waits).Session = 7 }, waits, 0, "also due"},
		{"parked and due", func(b *book) { b.head(review).Due = time.Unix(1, 0) }, review, 0, "without an unread signal, but due"},
		{"ended and held", func(b *book) { b.head(done).Session = 7 }, done, 0, "still held"},
		{"ended and due", func(b *book) { b.head(done).Due = time.Unix(1, 0) }, done, 0, "without an unread signal, but due"},
		{"waiting without being due", func(b *book) { b.head(review).WaitsFor = "books" }, review, 0, "not released and due"},
		{"waiting and held", func(b *book) {
			b.head(waits).WaitsFor, b.head(waits).Session, b.head(waits).Due = "books", 7, time.Time{}
		}, waits, 0, "not released and due"},

		// Signals.
		{"waiting with an unread signal", func(b *book) {
			b.head(waits).WaitsFor, b.head(waits).Posted, b.signals[waits] = "books", 1, []machine.Signal{{ID: 1}}
		}, waits, 0, "without room they are not read"},
		{"an ended work's signal unheard", func(b *book) {
			b.head(done).Posted, b.signals[done] = 2, append(b.signals[done], machine.Signal{ID: 2})
		}, done, 0, "no coordinator would read them"},
		{"a parked work's signal unheard", func(b *book) {
			b.head(review).Posted, b.signals[review] = 1, []machine.Signal{{ID: 1}}
		}, review, 0, "no coordinator would read them"},
		{"a signal lost", func(b *book) { b.signals[done] = []machine.Signal{{ID: 2}} }, done, 0, "number 2 is where number 1 should be"},
		{"a signal twice", func(b *book) {
			b.head(done).Posted, b.head(done).Due, b.signals[done] = 2, time.Unix(1, 0), append(b.signals[done], b.signals[done]...)
		}, done, 0, "number 1 is where number 2 should be"},
		{"a signal of another work consumed", func(b *book) {
			b.records[done][2].Signals, b.records[done][3].Snapshot = []int64{2}, nil
			b.head(done).Base = 1
			b.reseal(done, 2)
		}, done, 3, "consumes signal 2, which was never posted"},
		{"a signal consumed twice", func(b *book) {
			b.records[done][4].Signals = b.records[done][2].Signals
			b.head(done).Consumed, b.head(done).Posted = 2, 2
			b.signals[done] = append(b.signals[done], machine.Signal{ID: 2})
			b.reseal(done, 4)
		}, done, 5, "an earlier record consumed"},
		{"a signal's actor edited", func(b *book) { b.signals[done][0].Actor = "ben" }, done, 3, "as what shop said (again); the signal names ben (again)"},
		{"a signal's reason edited", func(b *book) { b.signals[done][0].Reason = "" }, done, 3, "the signal names shop ()"},
		{"signals miscounted", func(b *book) { b.head(done).Posted, b.head(done).Due = 2, time.Unix(1, 0) }, done, 0, "counts 2 signals, 1 are stored"},
		{"consumption miscounted", func(b *book) { b.head(done).Consumed, b.head(done).Due = 0, time.Unix(1, 0) }, done, 5, "count of consumed signals"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := soundBook(t)
			c.damage(b)
			report, err := ledger.Check(t.Context(), b, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Findings) != 1 {
				t.Fatalf("%d findings, want one:\n%v", len(report.Findings), report.Findings)
			}
			f := report.Findings[0]
			if f.ID != c.id || f.Seq != c.seq || !strings.Contains(f.What, c.says) {
				t.Errorf("found %q at record %d of %s, want %q at record %d of %s", f.What, f.Seq, f.ID, c.says, c.seq, c.id)
			}
			if line := f.String(); !strings.Contains(line, f.ID.String()) || !strings.Contains(line, f.What) || f.Do == "" || !strings.Contains(line, f.Do) {
				t.Errorf("%q does not say where, what and what to do", line)
			}
		})
	}
}

// The work's name is in every hash: under another name nothing of a chain holds.
func TestCheckRenamed(t *testing.T) {
	t.Parallel()
	b := soundBook(t)
	other := saga.ID{Saga: waits.Saga, Work: "other"}
	b.records[other], b.head(waits).ID = b.records[waits], other
	report, err := ledger.Check(t.Context(), b, nil)
	if err != nil || len(report.Findings) != 2 {
		t.Fatalf("found %v and error %v, want both records of the renamed work", report.Findings, err)
	}
	for i, f := range report.Findings {
		if f.ID != other || f.Seq != int64(i)+1 || !strings.Contains(f.What, "belongs to another chain") {
			t.Errorf("found %v, want record %d of %s", f, i+1, other)
		}
	}
}

// A review without a reason shows twice: the head differs from the chain, and nobody can act on it.
func TestCheckReviewWithoutReason(t *testing.T) {
	t.Parallel()
	b := soundBook(t)
	b.head(review).Reason = ""
	report, err := ledger.Check(t.Context(), b, nil)
	if err != nil || len(report.Findings) != 2 || !strings.Contains(report.Findings[1].What, `in review with reason ""`) {
		t.Errorf("found %v and error %v", report.Findings, err)
	}
}

// ChainsOnly does not ask the machine.
func TestCheckChainsOnly(t *testing.T) {
	t.Parallel()
	b := soundBook(t)
	b.records[done][1].Step = "ghost"
	b.reseal(done, 1)
	report, err := ledger.Check(t.Context(), b, &ledger.CheckOptions{ChainsOnly: true})
	if err != nil || len(report.Findings) != 0 {
		t.Errorf("found %v and error %v, want nothing", report.Findings, err)
	}
}

// Every page is read, whatever its size, and told.
func TestCheckPages(t *testing.T) {
	t.Parallel()
	for limit := 1; limit <= 5; limit++ {
		b := soundBook(t)
		b.head(another).Version = 9 // the last one
		pages := 0
		o := &ledger.CheckOptions{Filter: ledger.Filter{Limit: limit}, Progress: func(ledger.Report) { pages++ }}
		report, err := ledger.Check(t.Context(), b, o)
		if err != nil || report.Works != 4 || len(report.Findings) != 1 {
			t.Errorf("pages of %d: %d works, findings %v, error %v; want 4 works and one finding", limit, report.Works, report.Findings, err)
		}
		if want := (4 + limit - 1) / limit; pages != want {
			t.Errorf("pages of %d: told of %d pages, want %d", limit, pages, want)
		}
	}
}

// A head that moves while its chain is read is read again: a busy ledger is not a damaged one.
func TestCheckMovingHead(t *testing.T) {
	t.Parallel()
	b := soundBook(t)
	now := *b.head(waits)
	b.head(waits).Status, b.head(waits).Updated = saga.Running, now.Created // as it was before its last record
	lists := 0
	b.listed = func() {
		if lists++; lists == 2 {
			*b.head(waits) = now
		}
	}
	handed, moving := 0, 0
	o := &ledger.CheckOptions{Filter: ledger.Filter{Limit: 10}, Work: func(head *ledger.Instance, records []machine.Record, moves bool) error {
		if found := ledger.Examine(head, records, moves); len(found) > 0 {
			t.Errorf("what was handed on of %s is not sound: %v", head.ID, found)
		}
		if handed++; moves {
			moving++
		}
		return nil
	}}
	report, err := ledger.Check(t.Context(), b, o)
	if err != nil || len(report.Findings) != 0 || report.Works != 4 || report.Records != 10 || report.Moving != 0 || handed != 4 || moving != 0 {
		t.Errorf("got %+v and error %v, want nothing found; %d works were handed on, %d as moving", report, err, handed, moving)
	}

	b.listed = func() { // and one that never stands still is counted, not accused
		h := b.head(waits)
		h.Status, h.Updated = saga.Running, h.Updated.Add(1)
	}
	report, err = ledger.Check(t.Context(), b, o)
	if err != nil || len(report.Findings) != 0 || report.Moving != 1 || handed != 8 || moving != 1 {
		t.Errorf("got %+v and error %v, want one moving work and nothing found; %d works were handed on, %d as moving", report, err, handed, moving)
	}
	full := errors.New("the disk is full")
	o.Work = func(*ledger.Instance, []machine.Record, bool) error { return full }
	if _, err := ledger.Check(t.Context(), b, o); !errors.Is(err, full) {
		t.Errorf("error %v, want that of the one it is handed to", err)
	}
}

// A work that is forgotten, and started again under another number and salt between the listing and its chain, is not called edited.
func TestCheckStartedAgain(t *testing.T) {
	t.Parallel()
	b := soundBook(t)
	now := *b.head(another)
	b.head(another).Number++
	b.records[another][0].Hash[0]++ // it does not fit the head that was listed
	lists := 0
	b.listed = func() {
		if lists++; lists == 2 {
			*b.head(another) = now
			b.records[another][0].Hash[0]--
		}
	}
	if report, err := ledger.Check(t.Context(), b, &ledger.CheckOptions{Filter: ledger.Filter{Limit: 10}}); err != nil || len(report.Findings) != 0 || lists < 2 {
		t.Errorf("got %+v and error %v", report, err)
	}
}

// torn is a reader that fails.
type torn struct {
	*book
	list, history, signals error
}

func (r torn) List(ctx context.Context, f ledger.Filter) (ledger.Page, error) {
	page, err := r.book.List(ctx, f)
	return page, errors.Join(err, r.list)
}

func (r torn) History(ctx context.Context, id saga.ID) ([]machine.Record, error) {
	rs, err := r.book.History(ctx, id)
	return rs, errors.Join(err, r.history)
}

func (r torn) Signals(ctx context.Context, id saga.ID) ([]machine.Signal, error) {
	ss, err := r.book.Signals(ctx, id)
	return ss, errors.Join(err, r.signals)
}

// A work that goes by retention between the listing and its chain is as one that was not listed: who exports counts what is handed on.
func TestCheckWhatHasGone(t *testing.T) {
	t.Parallel()
	handed := int64(0)
	o := &ledger.CheckOptions{Work: func(*ledger.Instance, []machine.Record, bool) error { handed++; return nil }}
	report, err := ledger.Check(t.Context(), torn{soundBook(t), nil, ledger.ErrNotFound, nil}, o)
	if err != nil || report.Works != handed || handed != 0 || report.Moving != 0 || len(report.Findings) != 0 {
		t.Errorf("got %+v and error %v, and %d were handed on", report, err, handed)
	}
}

// A ledger that cannot be read is an error, not a finding.
func TestCheckUnreadable(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk on fire")
	b := soundBook(t)
	for i, r := range []torn{{b, broken, nil, nil}, {b, nil, broken, nil}, {b, nil, nil, broken}} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			if report, err := ledger.Check(t.Context(), r, nil); !errors.Is(err, broken) || len(report.Findings) > 0 {
				t.Errorf("got %+v and error %v, want the reader's error", report, err)
			}
		})
	}
	if _, err := ledger.Check(t.Context(), circular{b}, nil); err == nil || !strings.Contains(err.Error(), "again") {
		t.Errorf("a listing that begins again: error %v, want one that says so", err)
	}
}

// circular answers every page with the first.
type circular struct{ *book }

func (r circular) List(ctx context.Context, f ledger.Filter) (ledger.Page, error) {
	f.After = ""
	return r.book.List(ctx, f)
}
