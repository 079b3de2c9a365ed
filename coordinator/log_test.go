package coordinator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store/memory"
)

// lines is where a logger writes, as JSON.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) logger() *logrus.Logger {
	log := logrus.New()
	log.SetOutput(l)
	log.SetLevel(logrus.TraceLevel)
	log.SetFormatter(&logrus.JSONFormatter{})
	return log
}

func (l *lines) all(t *testing.T) (out []map[string]any) {
	t.Helper()
	for line := range strings.Lines(l.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

// "One line per state change", with the fields saga, work, key, step, attempt, session. At Info an instance has one, at its end.
func TestOneLinePerStateChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, w := memory.New(nil), &world{plan: on("mark", saga.Forward, 1, fault{refuse: true})}
		out := &lines{}
		o := quick()
		o.Log = out.logger()
		p := boot(t, l, w, config{opts: o})
		synctest.Wait()
		p.begin("o1")
		p.want("o1", saga.Compensated, "")
		rs := p.records.of("o1")
		bySeq := map[float64]map[string]any{}
		for _, line := range out.all(t) {
			if seq, ok := line["seq"].(float64); ok && line["work"] == "o1" {
				if is := line["level"] == "info"; is != (line["status"] == string(saga.Compensated)) {
					t.Errorf("level %s: %v", line["level"], line)
				}
				if bySeq[seq] != nil {
					t.Errorf("record %v has two lines", seq)
				}
				bySeq[seq] = line
			}
		}
		if len(bySeq) != len(rs) {
			t.Errorf("%d lines about %d records", len(bySeq), len(rs))
		}
		for _, r := range rs {
			line := bySeq[float64(r.Seq)]
			want := map[string]any{"saga": orderSaga, "work": "o1", "session": nil, "status": string(r.Status)}
			if r.Session != 0 {
				want["session"] = r.Session.String()
			}
			if r.Step != "" {
				want["step"], want["attempt"] = r.Step, float64(r.Attempt)
			}
			if r.Dispatch != nil {
				want["key"] = r.Dispatch.Key
			}
			for k, v := range want {
				if line[k] != v {
					t.Errorf("the line of record %d says %s %v, want %v", r.Seq, k, line[k], v)
				}
			}
		}
		verify(t, l, w, "o1")
	})
}

// "Canary secrets never appear in logs". The canary is in the input, in every output, and in
// what a lookup finds; every level is on, and everything that can be logged happens.
func TestBodiesAreNeverLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const canary = "canary-4711-do-not-print"
		l, w := memory.New(nil), &world{}
		w.plan = func(a arrival) fault {
			switch {
			case a.work == "o1" && a.step == "invoice" && a.n == 1:
				return fault{mute: true}
			case a.work == "o2" && a.step == "mark":
				return fault{refuse: true}
			case a.work == "o3" && a.step == "receipt":
				return fault{slow: 30 * time.Second, ignore: true}
			default:
				return fault{explode: a.step == "customer" && a.n == 1}
			}
		}
		out := &lines{}
		o := quick()
		o.Log = out.logger()
		var once sync.Once
		p := boot(t, l, w, config{opts: o, canary: canary, hook: &hooked{
			renew: func(context.Context) (err error) { once.Do(func() { err = errors.New("away") }); return err },
		}})
		synctest.Wait()
		for _, work := range []string{"o1", "o2", "o3"} {
			input := order{Customer: "c-" + work, Memo: canary}
			if _, err := p.Start(t.Context(), orderSaga, work, input, nil); err != nil {
				t.Fatal(err)
			}
			input.Total = 7
			if _, err := p.Start(t.Context(), orderSaga, work, input, nil); !errors.Is(err, coordinator.ErrConflict) || strings.Contains(err.Error(), canary) {
				t.Errorf("the conflict says %v", err)
			}
		}
		pass(2 * time.Minute)
		p.want("o1", saga.Completed, "")
		p.want("o2", saga.Compensated, "")
		p.want("o3", saga.Completed, "")
		if err := p.halt(); err != nil {
			t.Error(err)
		}
		rs, err := l.History(t.Context(), idOf("o1"))
		if err != nil || !strings.Contains(string(rs[0].Body), canary) || !strings.Contains(string(rs[len(rs)-1].Body), canary) {
			t.Fatalf("the canary is not where it must be seen: %v", err)
		}
		if len(out.all(t)) < 20 {
			t.Errorf("only %d lines: nothing much was logged", len(out.all(t)))
		}
		if strings.Contains(out.String(), canary) {
			t.Error("a body was logged")
		}
	})
}

// A listener is told of everything, with what it may want to count, and its nil fields are skipped.
func TestListenerIsToldAll(t *testing.T) {
	t.Parallel()
	var told []string
	say := func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }
	coordinator.TellAll(&coordinator.Listener{}, silent())
	coordinator.TellAll(&coordinator.Listener{
		Recorded: func(r coordinator.Record) {
			say("%s: %s of %s from %s to %s, dropped %v, dispatched %s under %s", r.ID, r.Kind, r.Step, r.From, r.To, r.Dropped, r.Dispatched, r.Key)
		},
		Duplicate:     func(_ saga.ID, source string) { say("duplicate from %s", source) },
		Conflict:      func(_ saga.ID, source string) { say("conflict from %s", source) },
		Claimed:       func(id saga.ID) { say("claimed %s", id) },
		Committed:     func(n int, took time.Duration) { say("committed %d in %s", n, took) },
		SessionOpened: func(session string) { say("opened %s", session) },
		SessionLost:   func(session string, why error) { say("lost %s: %v", session, why) },
	}, silent())
	want := "s w: done of a from running to completed, dropped true, dispatched b under k, duplicate from x, conflict from y, claimed s w, " +
		"committed 3 in 1ns, opened 0000000000000007, lost 0000000000000007: why"
	if got := strings.Join(told, ", "); got != want {
		t.Errorf("told\n%s, want\n%s", got, want)
	}
}

// Every fault of the options is reported at once.
func TestOptionsReportEveryFault(t *testing.T) {
	t.Parallel()
	_, err := coordinator.New(memory.New(nil), &coordinator.Options{
		MaxWorks: -1, MaxBytes: -1, MaxCrashes: -1, MaxBatch: -1, Writers: -1, Lease: time.Millisecond, Margin: -1, Poll: -1, Hold: -1, Drain: -1,
		Destinations: map[string]coordinator.Limit{"books": {PerSecond: -1}},
	})
	for _, want := range []string{"MaxWorks", "MaxBytes", "MaxCrashes", "MaxBatch", "Writers", "Lease", "Margin", "Poll", "Hold", "Drain", `"books"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not mention %s: %v", want, err)
		}
	}
}

// "A .To that names no configured destination, and a configured one no step names, are reported at
// registration": the first is an error, because its limit would be none; the second may belong to
// another process's sagas.
func TestAMisspeltDestinationIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := &lines{}
		c, err := coordinator.New(memory.New(nil), &coordinator.Options{
			Log: out.logger(), Destinations: map[string]coordinator.Limit{"books": {Concurrent: 1}, "shop": {}},
		})
		if err != nil {
			t.Fatal(err)
		}
		err = c.Register(t.Context(), oneStep(t, "billing", "bokos", nil), oneStep(t, "shipping", "parcels", nil))
		for _, want := range []string{`register billing version 1: step "make" goes to "bokos"`, `"parcels"`, "it names books, shop", "zero Limit"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the error does not say %s: %v", want, err)
			}
		}
		if err := c.Register(t.Context(), oneStep(t, "billing", "shop", nil), oneStep(t, "news", "", nil)); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := c.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if log := out.String(); !strings.Contains(log, `"destinations":["books"]`) || !strings.Contains(log, "misspelt") {
			t.Errorf("the log does not name it:\n%s", log)
		}
	})
}
