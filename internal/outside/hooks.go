package outside

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/amends-dev/amends/reconcile/webhook"
)

// Hooks says where the webhooks of a shop go, and what happens to them on the way. The shares lie
// between 0 and 1.
type Hooks struct {
	Seed uint64
	// Receivers are the URLs of those who hear. Each attempt goes to one of them; any of them can
	// acknowledge.
	Receivers []string
	// Secret is whsec_ and the base64 of at least 16 bytes.
	Secret     string
	Drops      float64 // share of webhooks whose first attempts never leave
	Duplicates float64 // share of webhooks that arrive more than once
	Forgeries  float64 // share of webhooks that are sent together with a forged one
	// Spread is how long a webhook is held up at most before it leaves, and the longest pause before
	// it is sent again.
	Spread time.Duration
	// Once: a webhook that did not leave or was not acknowledged is never sent again.
	Once bool
}

// The most that can become of one webhook, and how often a forger tries to be heard.
const (
	maxCopies  = 4
	maxDropped = 3
	maxForged  = 10
)

// Tally counts what happened to webhooks so far.
type Tally struct {
	Made         int `json:"made"`         // changes of the shop
	Acknowledged int `json:"acknowledged"` // answered with 2xx
	Lost         int `json:"lost"`         // given up, and acknowledged by no receiver
	Sent         int `json:"sent"`         // attempts that left, copies among them
	Dropped      int `json:"dropped"`      // attempts that never left
	Unheard      int `json:"unheard"`      // attempts that left and met no 2xx
	Copies       int `json:"copies"`       // attempts beyond what was needed
	Forged       int `json:"forged"`       // forged ones answered, other than with 429 or 5xx
	Refused      int `json:"refused"`      // of those: with 4xx, as they should be
	Believed     int `json:"believed"`     // of those: with 2xx
}

// Sender sends webhooks: late, out of order, some twice, some at first not at all, and some forged.
type Sender struct {
	Hooks

	client *http.Client
	slots  chan struct{}
	ctx    context.Context //nolint:containedctx // of all that it does, until Close
	end    context.CancelFunc
	tasks  sync.WaitGroup

	mu    sync.Mutex
	tally Tally
	over  int // webhooks that nothing more becomes of
}

// NewSender returns a sender that sends what it is told. It must be closed.
func NewSender(h Hooks) *Sender {
	const atOnce, timeout = 16, 3 * time.Second
	s := &Sender{Hooks: h, slots: make(chan struct{}, atOnce), client: &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: atOnce},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       timeout,
	}}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// Send sends a webhook until a receiver answers with 2xx, beside whatever else happens to it.
func (s *Sender) Send(w Webhook) {
	s.count(func(t *Tally) { t.Made++ })
	s.tasks.Go(func() {
		d := &delivery{Sender: s, Webhook: w, id: w.ID()}
		d.run()
	})
}

// Tally returns the counts so far.
func (s *Sender) Tally() Tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tally
}

// Quiet reports whether nothing more becomes of any webhook: each was acknowledged, or lost where
// that is for ever, and its copies are through.
func (s *Sender) Quiet() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over == s.tally.Made
}

// Close stops sending.
func (s *Sender) Close() {
	s.end()
	s.tasks.Wait()
	s.client.CloseIdleConnections()
}

func (s *Sender) count(change func(*Tally)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.tally)
}

// delivery is one webhook on its way.
type delivery struct {
	*Sender
	Webhook

	id string
}

// draw is a number from 0 up to 1 about the nth something of this webhook.
func (d *delivery) draw(what string) float64 { return Draw(d.Seed, "webhook/"+what+"/"+d.id) }

func nth(what string, n int) string { return what + "/" + strconv.Itoa(n) }

// upTo draws a number from 1 to n where this webhook is one of a share, and 0 otherwise.
func (d *delivery) upTo(n int, share float64, one, some string) int {
	if d.draw(one) >= share {
		return 0
	}
	return 1 + int(d.draw(some)*float64(n))
}

// run sends the webhook, its copies and the forged one beside it.
func (d *delivery) run() {
	var beside sync.WaitGroup
	if kind := d.upTo(len(forgeries), d.Forgeries, "forged", "forgery"); kind > 0 {
		beside.Go(func() { d.forge(forgeries[kind-1]) })
	}
	heard := d.insist(func() {
		for n := range d.upTo(maxCopies, d.Duplicates, "copied", "copies") {
			beside.Go(func() {
				if Pause(d.ctx, d.hold("copy", n)) == nil {
					d.count(func(t *Tally) { t.Copies++ })
					d.attempt("copy", n)
				}
			})
		}
	})
	beside.Wait()
	d.count(func(t *Tally) {
		d.over++
		if heard {
			t.Acknowledged++
		} else {
			t.Lost++
		}
	})
}

// insist sends the webhook until a receiver answers with 2xx, or once with Once, and reports whether
// one did. It calls leaving when the first attempt is about to leave.
func (d *delivery) insist(leaving func()) bool {
	dropped := d.upTo(maxDropped, d.Drops, "drop", "drops")
	if Pause(d.ctx, d.hold("first", 0)) != nil {
		return false
	}
	for n := 1; ; n++ {
		switch {
		case n <= dropped:
			d.count(func(t *Tally) { t.Dropped++ })
		case n == dropped+1:
			leaving()
			fallthrough
		default:
			if d.attempt("attempt", n) {
				return true
			}
		}
		if d.Once || Pause(d.ctx, d.backoff(n)) != nil {
			return false
		}
	}
}

// attempt sends the webhook once and reports whether it was acknowledged.
func (d *delivery) attempt(what string, n int) bool {
	heard := d.post(d.receiver(what, n), d.Secret, d.id, time.Now(), d.Body, d.Body)/100 == 2
	d.count(func(t *Tally) {
		t.Sent++
		if !heard {
			t.Unheard++
		}
	})
	return heard
}

// post sends a body under the signature of another, or of itself, and returns the answer's status, 0
// when none came.
func (d *delivery) post(url, secret, id string, at time.Time, signed, body []byte) int {
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-d.ctx.Done():
		return 0
	}
	status, err := deliver(d.ctx, d.client, url, secret, id, at, signed, body)
	if err != nil {
		return 0
	}
	return status
}

// deliver posts a webhook and returns the status of the answer.
func deliver(ctx context.Context, client *http.Client, url, secret, id string, at time.Time, signed, body []byte) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	if err := webhook.SignStandard(req.Header, secret, id, at, signed); err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// Tell sends a webhook once, signed, and fails unless it is acknowledged.
func Tell(ctx context.Context, url, secret string, w Webhook) error {
	status, err := deliver(ctx, http.DefaultClient, url, secret, w.ID(), time.Now(), w.Body, w.Body)
	if err == nil && status/100 != 2 {
		err = fmt.Errorf("the webhook was answered with %d", status)
	}
	return err
}

// receiver chooses where an attempt goes.
func (d *delivery) receiver(what string, n int) string {
	return d.Receivers[int(d.draw(nth("receiver/"+what, n))*float64(len(d.Receivers)))]
}

// hold is how long an attempt is held up. A third of them are not, so that some arrive together.
func (d *delivery) hold(what string, n int) time.Duration {
	return time.Duration(max(0, d.draw(nth("hold/"+what, n))*1.5-0.5) * float64(d.Spread))
}

// backoff is the pause after the nth attempt: up to a twentieth of Spread after the first and twice
// that after each further one, but no longer than Spread.
func (d *delivery) backoff(n int) time.Duration {
	most := min(d.Spread, d.Spread/20<<min(n-1, 10))
	return most/2 + time.Duration(d.draw(nth("pause", n))*float64(most/2))
}

// The forgeries. All of them speak of an order of the shop.
const (
	wrongSecret = "wrong-secret" // other content, signed with a secret that is not the shop's
	altered     = "altered"      // other content under the signature of the genuine one
	stale       = "stale"        // the genuine one, captured an hour ago and sent again
)

var forgeries = []string{wrongSecret, altered, stale}

// forge sends a forged webhook until a receiver answers with neither 429 nor 5xx.
func (d *delivery) forge(kind string) {
	lie, err := d.lie()
	if err != nil || Pause(d.ctx, d.hold("forgery", 0)) != nil {
		return
	}
	for n := range maxForged {
		status, to := 0, d.receiver("forgery", n)
		switch kind {
		case stale:
			status = d.post(to, d.Secret, d.id, time.Now().Add(-time.Hour), d.Body, d.Body)
		case altered:
			status = d.post(to, d.Secret, d.id, time.Now(), d.Body, lie)
		default:
			secret := "whsec_" + base64.StdEncoding.EncodeToString([]byte("anything but the shop's secret"))
			status = d.post(to, secret, d.id+"_new", time.Now(), lie, lie)
		}
		if status != 0 && status < 500 && status != http.StatusTooManyRequests {
			d.count(func(t *Tally) {
				t.Forged++
				switch status / 100 {
				case 2:
					t.Believed++
				case 4:
					t.Refused++
				}
			})
			return
		}
		if Pause(d.ctx, d.backoff(n+1)) != nil {
			return
		}
	}
}

// lie says of an order that it was cancelled, at a version that beats any.
func (d *delivery) lie() ([]byte, error) {
	var e Event
	if err := json.Unmarshal(d.Body, &e); err != nil {
		return nil, err
	}
	e.Type, e.Data.Status = TopicCancelled, Cancelled
	e.Data.Version += 1000
	return json.Marshal(e)
}

// Pause waits for d, or for the end of ctx.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
