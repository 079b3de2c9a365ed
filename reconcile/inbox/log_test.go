package inbox_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
)

// Nothing of a body is ever logged, nor is anything but the object and what became of it.
func TestNoBodyIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		log, hook := logtest.NewNullLogger()
		log.SetLevel(logrus.TraceLevel)
		b.opts.Log = log
		f := inbox.Fetched{Version: inbox.Counter(2), Body: []byte(`{"card":"4242"}`)}
		b.source.Fetch = func(context.Context, inbox.Object) (inbox.Fetched, error) { return f, nil }
		b.accept(intake.Event{Object: object("1"), Payload: intake.Whole, Version: inbox.Counter(1), Body: f.Body})
		b.hints("1")
		_, stop := b.run()
		b.after(time.Minute)
		stop()
		lines := 0
		for _, e := range hook.AllEntries() {
			text, err := e.String()
			if err != nil {
				t.Fatal(err)
			}
			if lines++; strings.Contains(text, "4242") {
				t.Errorf("a body is logged: %s", text)
			}
		}
		if lines < 4 {
			t.Fatalf("%d lines", lines)
		}
	})
}
