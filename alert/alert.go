// Package alert tells people outside what needs them, where no Prometheus does: that instances are in review, a job is late or a
// difference lasts, an approval is nearly overdue, withdrawals are held, no process runs a definition, and whatever amends status finds. Each
// is one message when it begins, with what to type, and one when it is over.
//
//	send, err := alert.Webhook("https://hooks.example/ops", "whsec_…")
//	…
//	alerts, err := alert.New(ctx, db, c, send, &alert.Options{Link: "https://ops.example/amends"})
//	…
//	err = c.Run(ctx, alerts)
//
// An alert is an instance of the saga amends-alert: it is on record before it is sent, and where sending fails it is tried again.
// Its destination is one of its own, so no other waits for it. Of several processes that run alerts one sends each. amends alerts lists
// what needs people and whether that was told, and amends alerts test sends one.
//
// # Mistakes people make
//
//   - No process runs, so none tells it: let something outside ask amends status --exit-code.
//   - The receiver takes a message that comes twice for two: one whose sender died while it was sent comes again, under the same id.
package alert

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/internal/desk"
	"github.com/amends-dev/amends/internal/faults"
	"github.com/amends-dev/amends/internal/finding"
	"github.com/amends-dev/amends/reconcile/webhook"
	"github.com/amends-dev/amends/sagahttp"
	"github.com/amends-dev/amends/store"
)

// Alert is one message: that something needs a person, or, with Over, that it is over.
//
//	type Alert struct {
//		ID    string     // of the message: one that comes twice has the same
//		Alert string     // the work id of the alert: that it is over has the same
//		About string     // what it is about, the same each time it comes
//		Kind  string     // review, job, difference, approval, duplicates, refused, test, or the kind of a finding of amends status
//		Words string
//		Next  string     // what to type, or to do
//		Link  string     // a page of the console; "": there is none
//		Count int        // of instances, differences and so on
//		At    time.Time  // since when
//		Over  bool       // it is over
//	}
type Alert = desk.Alert

// Send sends a message, within 30 seconds. An error has it sent again later; one that was sent may come again, with the same [Alert.ID].
type Send func(ctx context.Context, a Alert) error

// Options tunes alerts. The zero value is ready to use.
type Options struct {
	// Link is the address of the console, which messages lead to. Default: none.
	Link string
	// Every is how often it is looked what needs people. What is there twice is told, and what is not there twice is over. Default: 30 s.
	Every time.Duration
	// Lasts is how many runs of a job in a row find a difference before it is told. Default: 3.
	Lasts int
	// Log is told of what cannot be looked at. Default: logrus' standard logger.
	Log logrus.FieldLogger
}

// Alerts compares what needs people with the alerts that are open. It is a [coordinator.Part] of a process.
type Alerts struct {
	d          *desk.Desk
	c          *coordinator.Coordinator
	link       string
	lasts      int
	every      time.Duration
	log        logrus.FieldLogger
	seen, gone map[string]int // in how many looks in a row something was there, or an open alert's was not, by what it is about
}

// New registers the saga of alerts with a coordinator. Options may be nil.
func New(ctx context.Context, db store.DB, c *coordinator.Coordinator, send Send, o *Options) (*Alerts, error) {
	if o == nil {
		o = new(Options)
	}
	w := &Alerts{
		d: desk.New(db, ""), c: c, link: strings.TrimSuffix(o.Link, "/"), lasts: cmp.Or(o.Lasts, desk.DifferenceLasts), every: cmp.Or(o.Every, 30*time.Second),
		log: o.Log, seen: map[string]int{}, gone: map[string]int{},
	}
	if w.log == nil {
		w.log = logrus.StandardLogger()
	}
	var wrong faults.List
	wrong.Whenf(w.every < 0 || w.lasts < 1, "Every is %s, and Lasts %d: neither is below nothing", w.every, w.lasts)
	wrong.Whenf(send == nil, "nothing sends them: give Webhook, Command or a function")
	if err := wrong.Err(); err != nil {
		return nil, fmt.Errorf("new alerts: %w", err)
	}
	p, err := desk.AlertProgram(send)
	if err == nil {
		err = c.Register(ctx, p)
	}
	if err != nil {
		return nil, fmt.Errorf("new alerts: %w", err)
	}
	return w, nil
}

// Run looks what needs people, and returns nil when ctx ends. The coordinator sends, so it runs beside it: c.Run(ctx, alerts).
func (w *Alerts) Run(ctx context.Context) error {
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for {
		if err := w.look(ctx); err != nil && ctx.Err() == nil {
			w.log.WithError(err).Warn("what needs people could not be looked at; it is tried again")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// twice is how often something is seen before it is told: what comes together is told together, and what comes and goes is not told.
const twice = 2

func (w *Alerts) look(ctx context.Context) error {
	needs, partial, err := w.d.Needs(ctx, w.lasts)
	open, failed := w.d.Opened(ctx)
	if failed != nil {
		return errors.Join(err, failed)
	}
	seen, gone := map[string]int{}, map[string]int{}
	for i := range needs {
		a := &needs[i]
		seen[a.About] = w.seen[a.About] + 1
		if len(open[a.About]) > 0 || seen[a.About] < twice {
			continue
		}
		if a.Link = w.link + a.Link; w.link == "" {
			a.Link = ""
		}
		if _, told := w.d.Tell(ctx, w.c, *a, nil); told != nil {
			err = errors.Join(err, told)
		}
	}
	for about, works := range open {
		if seen[about] > 0 || !w.knows(about, partial) {
			continue
		}
		if gone[about] = w.gone[about] + 1; gone[about] < twice {
			continue
		}
		for _, work := range works {
			err = errors.Join(err, w.d.Over(ctx, work))
		}
	}
	w.seen, w.gone = seen, gone
	return err
}

// knows reports whether what an alert is about is looked at here, and to its end: only then it is over when it is not found. A program of
// another version, or with another Lasts, has alerts of its own.
func (w *Alerts) knows(about string, partial []string) bool {
	kind, rest, _ := strings.Cut(about, "/")
	of, _, _ := strings.Cut(rest, "/")
	switch kind {
	case "finding":
		return slices.Contains(finding.Kinds, of) && !slices.Contains(partial, "finding/")
	case "difference":
		return of == strconv.Itoa(w.lasts) && !slices.Contains(partial, "difference/"+of+"/")
	case "review", "job", "approval", "duplicates", "refused", "test":
		return !slices.Contains(partial, kind+"/")
	}
	return false
}

// Webhook sends messages to an address, signed as Standard Webhooks has it, with a secret whsec_… in base64. A message is an object with
// type, amends.alert.opened or amends.alert.closed, timestamp, since when, and data, the [Alert]; its id is the header webhook-id.
func Webhook(url, secret string) (Send, error) {
	sign := func(h http.Header, body []byte) error {
		return webhook.SignStandard(h, secret, h.Get("Webhook-Id"), time.Now(), body)
	}
	wrong := sign(http.Header{"Webhook-Id": {"test"}}, nil)
	client, err := sagahttp.New(url, &sagahttp.Options{Authorize: func(r *http.Request) error {
		body, err := io.ReadAll(r.Body)
		return cmp.Or(err, sign(r.Header, body))
	}})
	if err := errors.Join(wrong, err); err != nil {
		return nil, fmt.Errorf("the webhook of alerts: %w", err)
	}
	return func(ctx context.Context, a Alert) error {
		kind := "amends.alert.opened"
		if a.Over {
			kind = "amends.alert.closed"
		}
		body, err := json.Marshal(map[string]any{"type": kind, "timestamp": a.At, "data": a}) // the same bytes whenever it is sent
		if err != nil {
			return err
		}
		_, err = client.Do(ctx, sagahttp.Request{
			Method: http.MethodPost, Key: a.ID, Body: body, Header: http.Header{"Content-Type": {"application/json"}, "Webhook-Id": {a.ID}},
		})
		return err
	}, nil
}

// Command runs a program for each message: it reads the [Alert] as JSON, with AMENDS_ALERT_ID in its environment. It has done it when it
// ends with 0; what it prints else, up to 200 bytes, is kept as the error.
func Command(name string, args ...string) Send {
	return func(ctx context.Context, a Alert) error {
		body, err := json.Marshal(a)
		if err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.WaitDelay = 5 * time.Second // a child of its that outlives it may hold its output
		cmd.Stdin, cmd.Env = bytes.NewReader(body), append(os.Environ(), "AMENDS_ALERT_ID="+a.ID)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %.200s", name, err, strings.TrimSpace(string(out)))
		}
		return nil
	}
}
