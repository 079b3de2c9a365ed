package hooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/shopsim/shop"
)

// Outbox is where the webhooks come from.
type Outbox interface {
	Outbox(ctx context.Context, after int64, limit int) ([]shop.Webhook, error)
	Acknowledge(ctx context.Context, seq int64) error
	Told(ctx context.Context) (shop.Told, error)
}

// Options say where webhooks go and what happens to them on the way.
type Options struct {
	Plan
	// Receivers are the URLs of those who hear. Each attempt goes to one of
	// them; any of them can acknowledge.
	Receivers []string
	// Secret is whsec_ and the base64 of at least 16 bytes.
	Secret string
	// Spread is how long a webhook is held up at most before it leaves, and the
	// longest pause before it is sent again. Default: 1 s.
	Spread time.Duration
	// Once: a webhook that did not leave or was not acknowledged is never sent
	// again.
	Once bool
}

const (
	atOnce  = 16              // attempts under way
	timeout = 3 * time.Second // of one attempt
)

// Sender sends what is in an outbox. Its methods may be called from several
// goroutines.
type Sender struct {
	opts   Options
	outbox Outbox
	client *http.Client
	wake   chan struct{}
	slots  chan struct{}
	end    context.CancelFunc
	tasks  sync.WaitGroup

	mu     sync.Mutex
	tally  Tally
	over   int // webhooks that nothing more becomes of
	failed error
}

// Start returns a sender that sends the webhooks in the outbox that are not
// acknowledged, and those that come into it later. The context bounds the start
// only; the sender must be closed.
func Start(ctx context.Context, from Outbox, o Options) (*Sender, error) {
	if len(o.Receivers) == 0 {
		return nil, errors.New("hooks: there is no receiver to send to")
	}
	if err := sign(http.Header{}, o.Secret, "test", time.Now(), nil); err != nil {
		return nil, err
	}
	if o.Spread == 0 {
		o.Spread = time.Second
	}
	told, err := from.Told(ctx)
	if err != nil {
		return nil, err
	}
	s := &Sender{
		opts: o, outbox: from, over: told.Acknowledged,
		client: &http.Client{
			Transport:     &http.Transport{MaxIdleConnsPerHost: atOnce},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Timeout:       timeout,
		},
		wake: make(chan struct{}, 1), slots: make(chan struct{}, atOnce),
	}
	ctx, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.tasks.Go(func() { s.run(ctx) })
	return s, nil
}

// Wake tells the sender that there is something new in the outbox.
func (s *Sender) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Close stops sending. What was not acknowledged stays in the outbox.
func (s *Sender) Close() error {
	s.end()
	s.tasks.Wait()
	s.client.CloseIdleConnections()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// Quiet reports whether nothing more becomes of any webhook there is: each was
// acknowledged, or lost where that is for ever, and its copies are through.
func (s *Sender) Quiet(ctx context.Context) (bool, error) {
	told, err := s.outbox.Told(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	return err == nil && s.over >= told.Made, errors.Join(err, s.failed)
}

// run reads the outbox, and looks again whenever it is woken.
func (s *Sender) run(ctx context.Context) {
	for after := int64(0); ; {
		next, err := s.outbox.Outbox(ctx, after, 100)
		if err != nil {
			s.keep(ctx, err)
			return
		}
		for _, w := range next {
			after = w.Seq
			d := &delivery{Sender: s, hook: w, id: w.ID(), fate: s.opts.For(w.ID())}
			s.tasks.Go(func() { s.keep(ctx, d.run(ctx)) })
		}
		if len(next) > 0 {
			continue
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		}
	}
}

// keep keeps an error that is not the end of ctx.
func (s *Sender) keep(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failed = errors.Join(s.failed, fmt.Errorf("hooks: %w", err))
	}
}
