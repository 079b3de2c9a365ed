package webhook

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/internal/faults"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
)

// Receiver is the door for webhooks: an [http.Handler] for POST <prefix><source>. It is safe for
// concurrent use.
type Receiver struct {
	inbox   intake.Inbox
	opts    Options
	sources map[string]*source
	log     *refusalLog
	tally   *tally
}

// maxSources bounds the sources of one receiver, and with them its memory and its counters.
const maxSources = 1024

// New returns the receiver of in: what the sources send is stored there, and processed. Options may
// be nil. The error names everything that is wrong with all sources: a receiver that cannot verify
// one of them is not made.
func New(in *inbox.Processor, options *Options) (*Receiver, error) {
	if in == nil {
		return newReceiver(nil, nil, options)
	}
	var senders []named
	var wrong faults.List
	for _, s := range in.Sources() {
		switch w := s.Webhooks.(type) {
		case nil: // it sends none
		case *Sender:
			sender := *w
			sender.volatile, sender.begin = s.Policy.Volatile, s.Begin
			senders = append(senders, named{s.Name, sender})
		default:
			wrong.Whenf(true, "source %q: its Webhooks are a %T; only a *webhook.Sender is received", s.Name, w)
		}
	}
	r, err := newReceiver(in, senders, options)
	return r, errors.Join(wrong.Err(), err)
}

// newReceiver returns a receiver that stores what the senders send in inbox.
func newReceiver(inbox intake.Inbox, senders []named, options *Options) (*Receiver, error) {
	opts := options.withDefaults()
	wrong := faults.List{opts.validate()}
	wrong.Whenf(inbox == nil, "there is no inbox: what was verified has to be stored")
	wrong.Whenf(len(senders) == 0 || len(senders) > maxSources, "%d sources have Webhooks; 1 to %d are possible", len(senders), maxSources)
	r := &Receiver{inbox: inbox, opts: opts, sources: make(map[string]*source), log: newRefusalLog(&opts), tally: &tally{inbox: inbox}}
	signers := map[string]string{}
	for _, config := range senders {
		s, err := newSource(config)
		if r.sources[config.Name] != nil {
			err = errors.Join(err, errors.New("there is another source of this name"))
		}
		err = errors.Join(err, shared(signers, &config))
		wrong.Whenf(err != nil, "source %q: %w", config.Name, err)
		if err == nil {
			r.sources[config.Name] = s
		}
	}
	if err := wrong.Err(); err != nil {
		return nil, fmt.Errorf("webhook receiver:\n%w", err)
	}
	return r, nil
}

// shared says which secrets of a source another one has, too: what is signed for one would be
// believed of the other. signers are the sources by secret, to which it adds.
func shared(signers map[string]string, s *named) error {
	var wrong faults.List
	for i, secret := range s.Secrets {
		other, known := signers[secret.Text]
		wrong.Whenf(known && other != s.Name,
			"secret %d (%q): source %q has the same, so a delivery of one would be believed of the other", i+1, secret.Name, other)
		signers[secret.Text] = s.Name
	}
	return wrong.Err()
}

// ServeHTTP verifies one delivery, stores it and answers: 200 with an empty body once it is stored,
// and otherwise what the package comment says.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	t := r.begin(w)
	s := r.find(req)
	why := r.receive(t, s, req)
	if why == nil {
		w.WriteHeader(http.StatusOK)
		return
	}
	r.opts.Listener.Refused(s.name(), why.reason, why.reason.Status())
	r.log.refused(s.name(), why)
	r.tally.count(class{s.name(), why.reason})
	r.refuse(w, why.reason)
}

// receive returns why a delivery was not accepted, nil if it was.
func (r *Receiver) receive(t *turn, s *source, req *http.Request) *refusal {
	switch {
	case s == nil:
		return refuse(UnknownSource)
	case req.Method != http.MethodPost:
		return refuse(WrongMethod)
	case headerSize(req.Header) > r.opts.MaxHeader:
		return refuse(LargeHeader)
	case req.ContentLength > s.MaxBody:
		return refuse(LargeBody)
	}
	limit, why := s.readable(req)
	if why != nil {
		return why
	}
	h := s.hold()
	defer h.release()
	body, why := t.read(req, limit, h)
	if why != nil {
		return why
	}
	if s.Provider.greets != nil && s.Provider.greets(req.Header, body) {
		r.opts.Listener.Greeted(s.Name)
		return nil
	}
	return r.accept(t, s, req, body, h)
}

// accept verifies what was read, and stores it when there is a place: only who has signed takes
// one.
func (r *Receiver) accept(t *turn, s *source, req *http.Request, body []byte, h *hold) *refusal {
	now := r.opts.Now()
	k, why := s.verify(req.Header, body, now)
	if skew, n := s.clock.note(why, now); n > 0 {
		r.opts.Listener.ClockAlarm(s.Name, skew, n)
		r.log.clockAlarm(s.Name, skew, n)
	}
	if why != nil {
		return why
	}
	h.prove()
	k.used(now)
	if s.State == Refusing {
		return refuse(Closed)
	}
	if !s.limit.Allow() || !s.enter(t.budget(enterShare)) {
		return refuse(Busy)
	}
	defer s.leave()
	plain, err := unpack(req.Header, body, s.MaxBody, h)
	switch {
	case errors.Is(err, errTooLarge):
		return refuse(LargeBody)
	case errors.Is(err, errFull):
		return refuse(Busy)
	}
	events := s.events(message{Header: req.Header, Body: plain, Received: now, Types: s.Types}, err, k.name)
	if err := r.store(req.Context(), t, s, h, events); err != nil {
		return &refusal{reason: NotStored, err: err}
	}
	r.opts.Listener.Stored(s.Name, len(events), time.Since(t.began))
	unreadable, nameless := idle(events)
	r.log.kept(s.Name, intake.Malformed, unreadable, logrus.ErrorLevel,
		"a genuine webhook could not be read; it is stored, and listed by: amends inbox list --disposition malformed")
	r.log.kept(s.Name, intake.Unknown, nameless, logrus.WarnLevel,
		"a genuine webhook names no object, so nothing follows from it; the reason is in: amends inbox list --disposition unknown")
	return nil
}

// find returns the source that a request is for, nil if there is none or it is hidden.
func (r *Receiver) find(req *http.Request) *source {
	name, ok := strings.CutPrefix(req.URL.Path, r.opts.Prefix)
	s := r.sources[name]
	if !ok || s == nil || s.State == Hidden {
		return nil
	}
	return s
}

// refuse answers with the status of the reason and nothing else.
func (r *Receiver) refuse(w http.ResponseWriter, reason Refusal) {
	status := reason.Status()
	switch status {
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", strconv.FormatInt(int64(r.opts.RetryAfter/time.Second), 10))
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", http.MethodPost)
	case http.StatusRequestTimeout, http.StatusRequestEntityTooLarge:
		w.Header().Set("Connection", "close") // what is left of the body is not waited for
	}
	w.WriteHeader(status)
}

// Server returns a server for addr that serves only this receiver, with limits on what comes before
// the handler: the header's size and time, and idle connections. What it says about connections goes
// to Options.Log, a line a minute. A program that mounts the receiver in a server of its own sets the
// same limits there, and an ErrorLog, or strangers write lines into Go's standard log.
func (r *Receiver) Server(addr string) *Server {
	return &Server{http.Server{
		Addr: addr, Handler: r,
		ReadHeaderTimeout: 2 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    r.opts.MaxHeader,
		ErrorLog:          log.New(serverLog{r.log}, "", 0), //nolint:forbidigo // net/http takes no other; it writes to Options.Log
	}}
}

// Server is an HTTP server that is run beside the other parts of a process.
type Server struct{ http.Server }

// Run serves until ctx ends. Then no delivery is taken any more, and those in hand are answered:
// each has its budget.
func (s *Server) Run(ctx context.Context) error {
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*hardStop)
		defer cancel()
		stopped <- s.Shutdown(last)
	})
	err := s.ListenAndServe()
	if stop() || !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve webhooks: %w", err)
	}
	if err := <-stopped; err != nil {
		return errors.Join(fmt.Errorf("stop serving webhooks: %w", err), s.Close())
	}
	return nil
}
