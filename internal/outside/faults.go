package outside

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"time"
)

// Fault names one way to misbehave.
type Fault string

// The faults; the package comment says what each does.
const (
	None        Fault = ""
	TooMany     Fault = "too-many"
	Busy        Fault = "busy"
	ErrorBefore Fault = "error-before"
	CutBefore   Fault = "cut-before"
	Slow        Fault = "slow"
	ErrorAfter  Fault = "error-after"
	CutAfter    Fault = "cut-after"
	Silent      Fault = "silent"
)

// Menu is the faults a server can choose from. One that is in it twice is chosen twice as often.
type Menu []Fault

// The two menus. Mail is gentler: each lost answer of a mail server ends at a person, so most of its
// faults are of the kind that says what happened.
var (
	Ordinary = Menu{TooMany, ErrorBefore, CutBefore, Slow, ErrorAfter, CutAfter, CutAfter, Silent}
	Gentle   = Menu{Busy, Busy, Busy, Slow, Slow, Slow, CutBefore, CutAfter, Silent}
)

// Patience is how many arrivals of one key can meet a fault.
const Patience = 4

// Draw returns a number from 0 up to, not including, 1 that looks random and depends on the seed and
// on what it is drawn about, and on nothing else.
func Draw(seed uint64, about string) float64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d/%s", seed, about))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}

// Timing says how long the faults take that take time. A caller needs a deadline below Silent.
type Timing struct {
	Slow   time.Duration // how much later a slow request happens
	Silent time.Duration // how long an answer is held back
	Late   time.Duration // how long a lookup does not see what was made
	Retry  time.Duration // what Retry-After says, rounded up to whole seconds
}

// DefaultTiming suits callers with a deadline of one second.
var DefaultTiming = Timing{Slow: 150 * time.Millisecond, Silent: 2 * time.Second, Late: 300 * time.Millisecond, Retry: time.Second}

// Settled is how long after its deadline an unanswered request has either happened, for every lookup
// to see, or never will. Half of it is margin for a busy machine.
func (t Timing) Settled() time.Duration { return 2 * (t.Slow + t.Late) }

// Faults counts arrivals and acts out a plan. Close it before the servers it stands in front of.
type Faults struct {
	Timing

	seed    uint64
	closing chan struct{}

	mu    sync.Mutex
	rate  float64
	seen  map[string]int
	tally map[Fault]int
}

// NewFaults makes the faults of a seed. The rate is the share of arrivals that meet one, from 0 to 1:
// a higher rate adds faults and changes none.
func NewFaults(seed uint64, rate float64, t Timing) *Faults {
	return &Faults{Timing: t, seed: seed, rate: rate, closing: make(chan struct{}), seen: map[string]int{}, tally: map[Fault]int{}}
}

// Tally returns how often each fault was met.
func (f *Faults) Tally() map[Fault]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.tally)
}

// Close ends all waiting at once; requests that wait go on without.
func (f *Faults) Close() { close(f.closing) }

// at is what the nth arrival of a key meets, counted from 1, and whether lookups see it late.
func (f *Faults) at(menu Menu, key string, n int, rate float64) (met Fault, late bool) {
	if n > Patience {
		return None, false
	}
	arrival := fmt.Sprintf("%s/%d", key, n)
	if Draw(f.seed, "fault/"+arrival) < rate {
		met = menu[int(Draw(f.seed, "kind/"+arrival)*float64(len(menu)))]
	}
	lost := met == ErrorAfter || met == CutAfter || met == Silent
	if lost {
		rate = max(rate, 0.5)
	}
	return met, Draw(f.seed, "late/"+arrival) < rate
}

// next counts an arrival of key and returns what it meets.
func (f *Faults) next(menu Menu, key string) (met Fault, late bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[key]++
	if met, late = f.at(menu, key, f.seen[key], f.rate); met != None {
		f.tally[met]++
	}
	return met, late
}

// ByURL names a request by its method and address.
func ByURL(r *http.Request, _ []byte) string { return r.Method + " " + r.URL.RequestURI() }

// Before puts the faults of a menu in front of a server. name gives a request the key by which its
// arrivals are counted: the business name of the request, not its place in time.
func (f *Faults) Before(menu Menu, name func(r *http.Request, body []byte) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			return // the caller broke off: the request never arrived
		}
		met, late := f.next(menu, name(r, body))
		r.Body = io.NopCloser(bytes.NewReader(body))
		if late {
			r = r.WithContext(context.WithValue(r.Context(), hiddenKey{}, f.Late))
		}
		f.serve(met, w, r, next)
	})
}

func (f *Faults) serve(met Fault, w http.ResponseWriter, r *http.Request, next http.Handler) {
	switch met {
	case TooMany, Busy:
		if met == TooMany {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.Retry.Seconds()))))
		}
		http.Error(w, "too many requests, this one was not executed", http.StatusTooManyRequests)
	case ErrorBefore:
		badGateway(w)
	case CutBefore:
		reset(w)
	case Slow:
		f.hold(f.Slow, nil) // it will happen, whether the caller waits or not
		f.carry(w, r, next)
	case ErrorAfter:
		f.carry(httptest.NewRecorder(), r, next)
		badGateway(w)
	case CutAfter:
		f.carry(httptest.NewRecorder(), r, next)
		reset(w)
	case Silent:
		answer := httptest.NewRecorder()
		f.carry(answer, r, next)
		f.hold(f.Silent, r.Context().Done())
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()) // a caller that is gone is the usual case
	default:
		f.carry(w, r, next)
	}
}

// GivenUp is the header by which a caller says until when it awaits the answer, in milliseconds since
// 1970. No network carries a request for ever, and no server works at one for ever: what would take
// effect long after that is lost instead, so that [Timing.Settled] tells the truth on a busy machine,
// too.
const GivenUp = "X-Given-Up-At"

// carry brings a request to the server, unless it has been on its way for too long to change
// something.
func (f *Faults) carry(w http.ResponseWriter, r *http.Request, next http.Handler) {
	ms, err := strconv.ParseInt(r.Header.Get(GivenUp), 10, 64)
	if err == nil && r.Method != http.MethodGet && time.Now().After(time.UnixMilli(ms).Add(f.Settled()-f.Late)) {
		panic(http.ErrAbortHandler)
	}
	next.ServeHTTP(w, r)
}

// hold waits for d, until gone is closed, or until the faults are closed. A nil gone never ends the
// wait.
func (f *Faults) hold(d time.Duration, gone <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-gone:
	case <-f.closing:
	}
}

// hiddenKey is where a request's context keeps how long its effect is hidden.
type hiddenKey struct{}

// hidden returns how long lookups shall not see what a request makes.
func hidden(r *http.Request) time.Duration {
	d, _ := r.Context().Value(hiddenKey{}).(time.Duration)
	return d
}

func badGateway(w http.ResponseWriter) {
	http.Error(w, "the server behind this one did not answer", http.StatusBadGateway)
}

// reset ends the request's connection with a TCP reset.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // closes the connection, if less rudely
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
