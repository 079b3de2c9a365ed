// Package outside is everything that the example speaks with, behind HTTP: a shop, payments, orders and a provisioner of servers. They
// honour idempotency keys, and are as bad as the real ones: they fail before and after an effect, cut connections, and call back
// early, late, twice or never.
package outside

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/outside"
)

// Secret is what the shop signs its webhooks with.
const Secret = "whsec_YSBzZWNyZXQgb2YgdGhlIHNob3A=" //nolint:gosec // no secret: the shop is a fake

// Staff are the people, with their roles.
var Staff = map[string][]string{"fiona": {"finance"}, "frank": {"finance"}, "carol": {"cfo"}, "sam": {"sales"}}

// Password is that of all of them.
const Password = "an example's" //nolint:gosec // no secret: they are made up

// World is the shop and its partners.
type World struct {
	URL string // where they are

	front  string // where the program is, as they see it
	server *httptest.Server

	mu      sync.Mutex
	rng     *rand.Rand
	orders  map[string]*order // by work
	ids     []string
	keys    map[string]string // what was made under an idempotency key: its id
	jobs    map[string]*job
	Faults  int // requests that failed before or behind their effect
	Once    int // callbacks by how often they were sent
	Twice   int
	Lost    int
	Mails   int      // to those who decide
	Votes   int      // that counted, or were counted before
	Refused int      // votes that did not count
	Forged  int      // callbacks with a token that nothing gave out
	wrongs  []string // answers that must not be
	calls   sync.WaitGroup
}

// order is what the partners know of one order of the shop.
type order struct {
	ID       string `json:"id"`
	Version  int64  `json:"version"`
	Customer string `json:"customer"`
	Plan     string `json:"plan"`
	Cents    int64  `json:"cents"`

	fate     string          // what becomes of it, if anything bad
	large    bool            // finance decides about it
	mails    map[string]int  // to those who decide about it, by subject
	voted    map[string]bool // whose vote was taken
	unsure   bool            // a vote may have been taken whose answer was lost
	charges  int
	refunds  int
	placed   bool
	finished bool
	dropped  bool // cancelled
}

// job is a server in the making.
type job struct {
	ID    string `json:"id"`
	State string `json:"state"`
	Why   string `json:"why,omitempty"`

	work, callback string
}

// The fates of orders.
const (
	invalid  = "invalid"
	declined = "its card was declined"
	full     = "no server was free"
	broken   = "its server could not be made"
	silent   = "its server was never ready"
	rejected = "finance rejected it"
	open     = "finance did not decide in time"
)

// New starts a world with so many orders. front is where its callbacks go.
func New(seed uint64, orders int, front string) *World {
	w := &World{
		rng: rand.New(rand.NewPCG(seed, 0)), front: front, //nolint:gosec // a story, told again by its seed
		orders: map[string]*order{}, keys: map[string]string{}, jobs: map[string]*job{},
	}
	fates := []string{"", "", "", invalid, rejected, declined, "", broken, open, full, "", silent, ""}
	for i := range orders {
		o := &order{ID: fmt.Sprint(i + 1), Version: 1, Customer: fmt.Sprintf("customer %d", i+1), Plan: "small", Cents: int64(500 + 100*(i%7)), mails: map[string]int{}, voted: map[string]bool{}, fate: fates[i%len(fates)]}
		switch {
		case o.fate == invalid:
			o.Cents = 0
		case o.fate == rejected || o.fate == open || i%13 == 2 || i%13 == 10:
			o.Cents += 10_000
			o.large = true
		}
		w.ids = append(w.ids, o.ID)
		w.orders["order:"+o.ID] = o
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /shop/{id}", w.show)
	mux.HandleFunc("POST /mails", w.effect(w.mail))
	mux.HandleFunc("POST /charges", w.effect(w.charge))
	mux.HandleFunc("POST /refunds", w.effect(w.refund))
	mux.HandleFunc("PUT /orders/{work}", w.effect(w.put))
	mux.HandleFunc("POST /jobs", w.effect(w.submit))
	mux.HandleFunc("DELETE /jobs", w.effect(w.release))
	mux.HandleFunc("GET /jobs/{id}", w.job)
	w.server = httptest.NewServer(mux)
	w.URL = w.server.URL
	return w
}

// Wait waits for the last callback.
func (w *World) Wait() { w.calls.Wait() }

// Close stops the partners.
func (w *World) Close() {
	w.Wait()
	w.server.Close()
}

// of is what is known of the order of a work: shop:order:7.
func (w *World) of(work string) *order { return w.orders[strings.TrimPrefix(work, "shop:")] }

// request is what the partners are asked.
type request struct {
	For       string   `json:"for"`
	Charge    string   `json:"charge"`
	Callback  string   `json:"callback"`
	Cancelled bool     `json:"cancelled"`
	Server    string   `json:"server"`
	To        []string `json:"to"`
	Subject   string   `json:"subject"`
	Link      string   `json:"link"`
}

// errRefused is an answer that is final.
var errRefused = errors.New("refused")

// effect lets a partner do something, once for each key, and fails now and then before it or behind it.
func (w *World) effect(do func(r *http.Request, q *request) (any, error)) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		var q request
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil && !errors.Is(err, io.EOF) {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		w.mu.Lock()
		luck := w.rng.IntN(20)
		if luck < 4 {
			w.Faults++
		}
		w.mu.Unlock()
		if luck == 0 {
			http.Error(rw, "come again", http.StatusServiceUnavailable)
			return
		}
		w.mu.Lock()
		made, err := do(r, &q)
		w.mu.Unlock()
		switch {
		case luck == 1 || luck == 2: // the effect is there, and its answer is lost
			panic(http.ErrAbortHandler)
		case luck == 3:
			http.Error(rw, "something broke", http.StatusInternalServerError)
		case err != nil:
			http.Error(rw, err.Error(), http.StatusUnprocessableEntity)
		default:
			answer(rw, made)
		}
	}
}

func answer(rw http.ResponseWriter, v any) {
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(v) //nolint:errchkjson // who asked sees what is missing
}

func (w *World) show(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	answer(rw, w.orders["order:"+r.PathValue("id")])
}

// once is the id of what was made under the request's key, and whether it is new.
func (w *World) once(r *http.Request, what string) (id string, fresh bool) {
	key := what + r.Header.Get("Idempotency-Key")
	if id = w.keys[key]; id == "" {
		id, fresh = fmt.Sprintf("%s_%d", what, len(w.keys)+1), true
		w.keys[key] = id
	}
	return id, fresh
}

func (w *World) charge(r *http.Request, q *request) (any, error) {
	o := w.of(q.For)
	if o.fate == declined {
		return nil, fmt.Errorf("%w: the card is declined", errRefused)
	}
	id, fresh := w.once(r, "ch")
	if fresh {
		o.charges++
	}
	return map[string]string{"id": id}, nil
}

func (w *World) refund(r *http.Request, q *request) (any, error) {
	id, fresh := w.once(r, "re")
	if fresh && w.keys["ch"+q.Charge] != "" {
		w.of(q.For).refunds++
	}
	return map[string]string{"id": id}, nil
}

func (w *World) put(r *http.Request, q *request) (any, error) {
	o := w.of(r.PathValue("work"))
	o.placed, o.dropped, o.finished = true, o.dropped || q.Cancelled, o.finished || q.Server != ""
	return map[string]string{"id": "ord_" + o.ID}, nil
}

func (w *World) submit(r *http.Request, q *request) (any, error) {
	o := w.of(q.For)
	if o.fate == full {
		return nil, fmt.Errorf("%w: no server is free", errRefused)
	}
	id, fresh := w.once(r, "job")
	if fresh {
		j := &job{ID: id, State: "running", work: q.For, callback: q.Callback}
		w.jobs[id] = j
		luck, takes := w.rng.IntN(10), time.Duration(w.rng.IntN(600))*time.Millisecond
		w.calls.Go(func() { w.run(j, o.fate, luck, takes) })
	}
	return *w.jobs[id], nil
}

func (w *World) release(r *http.Request, _ *request) (any, error) {
	for _, j := range w.jobs {
		if j.work != r.FormValue("for") {
			continue
		}
		if o := w.of(j.work); j.State == "running" && o.fate == "" { // it was given up before it was ready
			o.fate = silent
		}
		j.State = "released"
	}
	return map[string]string{"id": "released"}, nil
}

func (w *World) job(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.jobs[r.PathValue("id")]; j != nil {
		answer(rw, j)
		return
	}
	http.NotFound(rw, r)
}

// run makes a server, and calls back: sometimes at once, before the request for it was answered.
func (w *World) run(j *job, fate string, luck int, takes time.Duration) {
	if luck > 1 {
		time.Sleep(takes)
	}
	w.mu.Lock()
	if fate == silent || j.State == "released" {
		w.mu.Unlock()
		return
	}
	path := j.callback
	if j.State = "ready"; fate == broken {
		j.State, j.Why, path = "failed", "it does not boot", j.callback+"/fail"
	}
	body, _ := json.Marshal(j) //nolint:errchkjson // texts always marshal
	times := 1
	switch {
	case luck == 2 || luck == 3:
		times = 0
		w.Lost++
	case luck == 4 || luck == 5:
		times = 2
		w.Twice++
	default:
		w.Once++
	}
	w.mu.Unlock()
	for range times {
		w.call(path, body, http.StatusOK)
		time.Sleep(takes / 4)
	}
	w.call(j.callback+"x", body, http.StatusNotFound) // a stranger tries a token
	w.mu.Lock()
	w.Forged++
	w.mu.Unlock()
}

// call calls back until there is an answer that is one, and notes one that is not the one it should be.
func (w *World) call(url string, body []byte, want int) {
	for range 300 {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return
		}
		if answer, err := http.DefaultClient.Do(r); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode < 500 {
				if answer.StatusCode != want {
					w.mu.Lock()
					w.wrongs = append(w.wrongs, fmt.Sprintf("a callback was answered with %d, want %d: %s", answer.StatusCode, want, body))
					w.mu.Unlock()
				}
				return
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// Sell sends the signed webhook of every order, until each is taken; every third comes twice.
func (w *World) Sell(ctx context.Context) error {
	for i, id := range w.ids {
		for range 1 + (i+1)%3/2 {
			if err := w.tell(ctx, id); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *World) tell(ctx context.Context, id string) error {
	w.mu.Lock()
	body, err := json.Marshal(map[string]any{"type": "order.created", "data": w.orders["order:"+id]})
	w.mu.Unlock()
	if err != nil {
		return err
	}
	for outside.Tell(ctx, w.front+"/webhooks/shop", Secret, outside.Webhook{Order: id, Version: 1, Body: body}) != nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// Orders is how many orders there are.
func (w *World) Orders() int { return len(w.ids) }

// Audit looks at what the partners have of every order. It returns how many customers are served, how many got nothing and paid
// nothing, by why, and every wrong.
func (w *World) Audit() (served int, spared map[string]int, wrongs []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	spared, wrongs = map[string]int{}, append(wrongs, w.wrongs...)
	for _, id := range w.ids {
		o, live := w.orders["order:"+id], 0
		for _, j := range w.jobs {
			if w.of(j.work) == o && j.State != "released" {
				live++
			}
		}
		wrong := func(is bool, what string) {
			if is {
				wrongs = append(wrongs, fmt.Sprintf("order %s (%s): %s: %d charges, %d refunds, placed %t, cancelled %t, finished %t, %d servers",
					id, cmp.Or(o.fate, "nothing is wrong with it"), what, o.charges, o.refunds, o.placed, o.dropped, o.finished, live))
			}
		}
		wrong(o.charges > 1, "charged twice")
		for subject, n := range o.mails {
			wrong(n > 1, "two mails: "+subject)
		}
		if o.large && o.fate == "" && len(o.voted) < 2 && !(o.unsure && o.finished) { // who was asked, and in time, is a matter of the machine
			o.fate = open
		}
		wrong(o.large && len(o.mails) > 3 || !o.large && len(o.mails) > 0, fmt.Sprintf("%d mails asked about it", len(o.mails)))
		if o.fate == "" {
			served++
			wrong(o.charges-o.refunds != 1, "not charged once")
			wrong(!o.finished || o.dropped, "not finished")
			wrong(live != 1, "not one server")
			continue
		}
		spared[o.fate]++
		wrong(o.charges != o.refunds, "the money was not paid back")
		wrong(o.placed && !o.dropped || o.finished, "the order stands")
		wrong(live > 0, "a server is left")
	}
	return served, spared, wrongs
}
