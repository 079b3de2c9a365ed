package coordinator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/ledger"
	"github.com/amends-dev/amends/internal/machine"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// A backlog is not worked off at MaxWorks per Poll: what is let go makes room, and room is
// claimed at once.
func TestABacklogDoesNotWaitForThePoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(nil)
		web := several(t, l, config{idle: true}, oneStep(t, "billing", "", nil))
		web.starts("billing", 400)
		begun := time.Now()
		p := several(t, l, config{opts: coordinator.Options{MaxWorks: 8}}, oneStep(t, "billing", "", nil))
		for in(t, l, "billing")[saga.Completed] < 400 && time.Since(begun) < time.Minute {
			pass(10 * time.Millisecond)
		}
		if took := time.Since(begun); took > quick().Poll {
			t.Errorf("400 works that take no time took %s with MaxWorks 8 and a poll of %s", took, quick().Poll)
		}
		if err := p.halt(); err != nil {
			t.Error(err)
		}
	})
}

// slowly is a ledger whose claims take a while, as those of a database do: meanwhile starts come.
type slowly struct{ *memory.DB }

func (s slowly) Claim(ctx context.Context, t machine.Token, c ledger.Claim) (ledger.Claimed, error) {
	<-time.After(60 * time.Millisecond)
	return s.DB.Claim(ctx, t, c)
}

// Starts that come at five times what a process can do keep nothing that is due from
// running: a retry, a compensation, the works of a process that died. Nor does a backlog of those
// keep new works from beginning.
func TestStartsAndWhatIsDueShareTheRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, sent := slowly{memory.New(nil)}, &diary{}
		act := func(_ context.Context, c saga.Call[order]) (thing, error) {
			switch n := sent.note(c.Work); {
			case n == 1 && c.Input.Memo == "retried":
				return thing{}, saga.RetryAfter(6*time.Second, saga.NotSent(errTooBusy))
			case n > 1:
				sent.note("retries")
			default:
				sent.note("new")
			}
			<-time.After(time.Second)
			return thing{ID: "x"}, nil
		}
		p := several(t, l, config{opts: coordinator.Options{MaxWorks: 4}}, oneStep(t, "billing", "", act))
		synctest.Wait()
		start := func(work, memo string) {
			if _, err := p.Start(t.Context(), "billing", work, order{Memo: memo}, nil); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 300 { // a backlog of 75 s
			start(fmt.Sprint("retried", i), "retried")
			pass(10 * time.Millisecond)
		}
		pass(10 * time.Second)
		begun, retries, fresh := time.Now(), len(sent.of("retries")), len(sent.of("new"))
		for i := 0; time.Since(begun) < time.Minute; i++ { // twenty a second, where four can be done
			start(fmt.Sprint("w", i), "")
			pass(50 * time.Millisecond)
		}
		retries, fresh = len(sent.of("retries"))-retries, len(sent.of("new"))-fresh
		if retries < 100 || fresh < 75 {
			t.Errorf("in a minute in which 240 could be done, %d retries and %d new works were done", retries, fresh)
		}
		p.kill()
	})
}

// What is in hand is bounded in bytes, whether it was started here or claimed; everything is
// done in the end.
func TestWhatIsInHandIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	for name, claimed := range map[string]bool{"started": false, "claimed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := memory.New(nil)
				act := func(context.Context, saga.Call[string]) (thing, error) {
					<-time.After(10 * time.Second)
					return thing{ID: "x"}, nil
				}
				d, err := saga.Define("large", 1, saga.Do("make", act).Idempotent().NoUndo("it stays").Timeout(time.Hour))
				if err != nil {
					t.Fatal(err)
				}
				const each, most = 200 << 10, 4 << 20
				p := several(t, l, config{opts: coordinator.Options{MaxBytes: most}}, d)
				from := p
				if claimed {
					from = several(t, l, config{idle: true}, d)
				}
				synctest.Wait()
				input, _ := json.Marshal(strings.Repeat("x", each))
				for i := range 60 {
					if _, err := from.Start(t.Context(), "large", fmt.Sprint("w", i), json.RawMessage(input), nil); err != nil {
						t.Fatal(err)
					}
				}
				pass(5 * time.Second)
				if n := held(t, l, p); n*each > most || n < most/each/2 {
					t.Errorf("%d works of %d bytes are in hand, with room for %d bytes", n, each, most)
				}
				pass(2 * time.Minute)
				if n := in(t, l, "large")[saga.Completed]; n != 60 {
					t.Errorf("%d of 60 are completed", n)
				}
			})
		})
	}
}

// A source that adds a time to every redelivery makes a record and a signal of the first
// few only; all of them are counted and told that they are in conflict.
func TestConflictsAreKeptAFewTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(nil)
		p := several(t, l, config{}, oneStep(t, "billing", "", nil))
		synctest.Wait()
		for i := range 200 {
			_, err := p.Start(t.Context(), "billing", "w", order{Total: i}, nil)
			if i > 0 && !errors.Is(err, coordinator.ErrConflict) || i == 0 && err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		id := saga.ID{Saga: "billing", Work: "w"}
		records, err := l.History(t.Context(), id)
		signals, serr := l.Signals(t.Context(), id)
		if err != nil || serr != nil || len(records) > 10 || len(signals) > 5 {
			t.Errorf("%d records and %d signals after two hundred redeliveries, %v, %v", len(records), len(signals), err, serr)
		}
		counted(t, l, 199)
	})
}

// A start names what caused it, on the first record, and on the signal that brings a newer version.
func TestAStartNamesItsCause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(nil)
		p := several(t, l, config{}, oneStep(t, "billing", "", nil))
		synctest.Wait()
		for i, cause := range []string{"event evt_1", "event evt_2"} {
			o := &saga.StartOptions{Revision: fmt.Sprint(i + 1), Source: "webhook", Cause: cause}
			if _, err := p.Start(t.Context(), "billing", "w", order{Total: i}, o); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		signals, err := l.Signals(t.Context(), saga.ID{Saga: "billing", Work: "w"})
		if err != nil || len(signals) != 1 || signals[0].Reason != "event evt_2" {
			t.Errorf("signals %+v, %v", signals, err)
		}
		if r := history(t, l, "w")[0]; r.Cause != "event evt_1" {
			t.Errorf("the first record says %q", r.Said())
		}
	})
}
