package alert_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/alert"
	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/reconcile/webhook"
	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/store"
	"github.com/amends-dev/amends/store/memory"
)

// TestMain lets the test binary be a process that is killed while it sends.
func TestMain(m *testing.M) {
	if os.Getenv("ALERT_DB") != "" {
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func quiet() *logrus.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}

// bills is a saga whose mails are refused behind the pivot until they are mended: each is then in review.
type bills struct {
	mu     sync.Mutex
	mended bool
}

func (b *bills) saga() (saga.Program, error) {
	pay := func(context.Context, saga.Call[int]) (struct{}, error) { return struct{}{}, nil }
	mail := func(context.Context, saga.Call[int]) (struct{}, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if !b.mended {
			return struct{}{}, saga.Permanent(errors.New("no such mailbox"))
		}
		return struct{}{}, nil
	}
	return saga.Define("bill", 1,
		saga.Do("pay", pay).Idempotent().Once().NoID().NoUndo("it is a test").Pivot(),
		saga.Do("mail", mail).Idempotent().Once().NoID().NoUndo("it is a test"))
}

// running is a coordinator that runs until the test ends.
func running(t *testing.T, db store.DB, programs ...saga.Program) *coordinator.Coordinator {
	t.Helper()
	c, err := coordinator.New(db, &coordinator.Options{Log: quiet(), Lease: time.Second, Poll: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Register(t.Context(), programs...); err != nil {
		t.Fatal(err)
	}
	beside(t, func(ctx context.Context) error { return c.Run(ctx) })
	return c
}

// beside runs something until the test ends.
func beside(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// alerts looks often what needs people.
func alerts(t *testing.T, db store.DB, c *coordinator.Coordinator, send alert.Send, link string) *alert.Alerts {
	t.Helper()
	a, err := alert.New(t.Context(), db, c, send, &alert.Options{Link: link, Every: 20 * time.Millisecond, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// until waits until something is so.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for ends := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(ends) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func opened(t *testing.T, path string) store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), path, &store.Options{Witness: store.WitnessIn(filepath.Join(filepath.Dir(path), "witness"))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// What needs people is one message, whatever number of instances it is and of processes that look, and one when it is over, by the same
// alert. It comes again when it does. Each is signed as receivers of Standard Webhooks verify it.
func TestOneMessageEach(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	var mu sync.Mutex
	var got []alert.Alert
	there := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		at, _ := strconv.ParseInt(r.Header.Get("webhook-timestamp"), 10, 64)
		signed := http.Header{}
		if err := webhook.SignStandard(signed, secret, r.Header.Get("webhook-id"), time.Unix(at, 0), body); err != nil || signed.Get("webhook-signature") != r.Header.Get("webhook-signature") {
			t.Errorf("signed %q: %v", r.Header, err)
		}
		var m struct {
			Type string
			Data alert.Alert
		}
		if err := json.Unmarshal(body, &m); err != nil || m.Data.ID != r.Header.Get("webhook-id") || (m.Type == "amends.alert.closed") != m.Data.Over {
			t.Errorf("%s: %v", body, err)
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, m.Data)
	}))
	t.Cleanup(there.Close)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%+v", got)
		}
	})
	about := func(about string) (all []alert.Alert) {
		mu.Lock()
		defer mu.Unlock()
		for _, a := range got {
			if a.About == about {
				all = append(all, a)
			}
		}
		return all
	}

	send, err := alert.Webhook(there.URL, secret)
	if err != nil {
		t.Fatal(err)
	}
	db := opened(t, filepath.Join(t.TempDir(), "ledger.db"))
	b := &bills{}
	p, err := b.saga()
	if err != nil {
		t.Fatal(err)
	}
	c := running(t, db, p)
	for range 2 {
		beside(t, alerts(t, db, c, send, "https://ops.example/amends/").Run)
	}
	const mails, many = "review/bill/mail/after-pivot", "review/bill/mail/after-pivot/10"
	for round := 1; round <= 2; round++ {
		for i := range 12 {
			if _, err := c.Start(t.Context(), "bill", fmt.Sprintf("bill:%d:%d", round, i), i, nil); err != nil {
				t.Fatal(err)
			}
		}
		until(t, "told", func() bool { return len(about(mails)) == 2*round-1 && len(about(many)) == 2*round-1 })
		b.mu.Lock()
		b.mended = true
		b.mu.Unlock()
		d := desk.New(db, "")
		in := &desk.BatchIn{By: desk.By{Actor: "anna", Reason: "mended"}, Act: "retry", Many: desk.Many{Filter: desk.Filter{"saga=bill", "status=review"}}}
		in.Defaults()
		in.Rate = 1000
		if _, err := d.Batch(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		until(t, "over", func() bool { return len(about(mails)) == 2*round && len(about(many)) == 2*round })
		open := func() bool {
			all, err := d.Opened(t.Context())
			return err == nil && len(all[mails])+len(all[many]) == 0
		}
		until(t, "at its end", open)
		b.mu.Lock()
		b.mended = false
		b.mu.Unlock()
	}
	all := about(mails)
	if all[0].Over || !all[1].Over || all[1].Alert != all[0].Alert || all[2].Alert == all[0].Alert || all[1].ID == all[0].ID {
		t.Errorf("%+v", all)
	}
	if want := "https://ops.example/amends/works?"; !strings.HasPrefix(all[0].Link, want) || !strings.Contains(all[0].Words, "no such mailbox") {
		t.Errorf("%+v", all[0])
	}
}

// A receiver that is away, or refuses, holds nothing else up, and is told when it is back: once.
func TestAReceiverThatIsAway(t *testing.T) {
	t.Parallel()
	db := opened(t, filepath.Join(t.TempDir(), "ledger.db"))
	var mu sync.Mutex
	var away, tried, told = true, 0, []string{}
	send := func(_ context.Context, a alert.Alert) error {
		mu.Lock()
		defer mu.Unlock()
		if tried++; away {
			return saga.Permanent(errors.New("401: who are you?"))
		}
		if a.Kind == "test" { // beside it what the test's own machine has to tell
			told = append(told, a.Alert)
		}
		return nil
	}
	b := &bills{mended: true}
	p, err := b.saga()
	if err != nil {
		t.Fatal(err)
	}
	c := running(t, db, p)
	beside(t, alerts(t, db, c, send, "").Run)
	try := &desk.TestAlertIn{By: desk.By{Actor: "anna", Reason: "does it arrive?"}}
	until(t, "known to run alerts", func() bool { _, err := desk.New(db, "").TestAlert(t.Context(), try); return err == nil })
	until(t, "tried", func() bool { mu.Lock(); defer mu.Unlock(); return tried > 0 })
	if _, err := c.Start(t.Context(), "bill", "bill:1", 1, nil); err != nil {
		t.Fatal(err)
	}
	if s, err := c.Wait(t.Context(), "bill", "bill:1"); err != nil || s.Status != saga.Completed {
		t.Fatal(s.Status, err)
	}
	mu.Lock()
	away = false
	mu.Unlock()
	until(t, "told, and that it is over", func() bool { mu.Lock(); defer mu.Unlock(); return slices.Equal(told, []string{"test@1", "test@1"}) })
}

// child is a process that sends alerts into a file, and dies while it sends one: before it is in the file, or behind that.
func child() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	db, err := store.Open(ctx, os.Getenv("ALERT_DB"), &store.Options{Witness: store.WitnessIn(filepath.Dir(os.Getenv("ALERT_DB")))})
	if err != nil {
		return err
	}
	c, err := coordinator.New(db, &coordinator.Options{Log: quiet(), Lease: 500 * time.Millisecond, Poll: 20 * time.Millisecond})
	if err != nil {
		return err
	}
	send := func(_ context.Context, a alert.Alert) error {
		kind := map[bool]string{false: "open", true: "over"}[a.Over]
		if a.Kind != "test" {
			return nil
		}
		die := func(when string) {
			if os.Getenv("ALERT_DIES") == when+" "+kind {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}
		die("before")
		f, err := os.OpenFile(os.Getenv("ALERT_DB")+".told", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		fmt.Fprintln(f, kind, a.ID)
		if err := f.Close(); err != nil {
			return err
		}
		die("behind")
		return nil
	}
	alerts, err := alert.New(ctx, db, c, send, &alert.Options{Every: 50 * time.Millisecond, Log: quiet()})
	if err != nil {
		return err
	}
	go func() {
		for ctx.Err() == nil {
			if s, err := c.Show(ctx, saga.ID{Saga: desk.AlertSaga, Work: "test@1"}); err == nil && s.Status.Terminal() && os.Getenv("ALERT_DIES") == "" {
				cancel()
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return c.Run(ctx, alerts)
}

// An alert that was stored is told once, and that it is over, too, whenever its process is killed. One whose process dies behind sending it
// comes again under the id that it had.
func TestAlertsSurviveAKill(t *testing.T) {
	t.Parallel()
	runs := 4
	if os.Getenv("AMENDS_NIGHTLY") != "" {
		runs = 20
	}
	for i := range runs {
		dies := []string{"before open", "behind open", "before over", "behind over"}[i%4]
		path := filepath.Join(t.TempDir(), "ledger.db")
		db := opened(t, path)
		c, err := coordinator.New(db, &coordinator.Options{Log: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		p, err := desk.AlertProgram(func(context.Context, alert.Alert) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Register(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if _, err := desk.New(db, "").Tell(t.Context(), c, alert.Alert{About: "test", Kind: "test", Words: "does it arrive?", Count: 1}, nil); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		for _, when := range []string{dies, ""} {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), "ALERT_DB="+path, "ALERT_DIES="+when)
			if out, err := cmd.CombinedOutput(); (err != nil) != (when != "") {
				t.Fatalf("dies %q: %v\n%s", when, err, out)
			}
		}
		text, err := os.ReadFile(path + ".told")
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		twice := map[bool]int{false: 0, true: 1}[strings.HasPrefix(dies, "behind")]
		if ids := slices.Compact(slices.Clone(lines)); len(lines) != 2+twice || len(ids) != 2 || !strings.HasPrefix(ids[0], "open ") || !strings.HasPrefix(ids[1], "over ") {
			t.Errorf("dies %s: told\n%s", dies, text)
		}
	}
}

// What cannot work is said before anything runs.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	c, err := coordinator.New(memory.New(nil), &coordinator.Options{Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = alert.New(t.Context(), nil, c, nil, &alert.Options{Every: -time.Second})
	if err == nil || !strings.Contains(err.Error(), "Every is -1s") || !strings.Contains(err.Error(), "nothing sends them") {
		t.Errorf("%v", err)
	}
	if _, err := alert.Webhook("ftp://x", "secret"); err == nil || !strings.Contains(err.Error(), "whsec_") || !strings.Contains(err.Error(), "http://") {
		t.Errorf("%v", err)
	}
	send := alert.Command("sh", "-c", "cat >&2; exit 3")
	if err := send(t.Context(), alert.Alert{Words: "no such mailbox"}); err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no such mailbox") {
		t.Errorf("%v", err)
	}
}
