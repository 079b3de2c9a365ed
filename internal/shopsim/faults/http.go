package faults

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/amends-dev/amends/internal/shopsim/rest"
)

// Name gives a request the key by which its arrivals are counted.
type Name func(r *http.Request, body []byte) string

// ByURL names a request by its method and address.
func ByURL(r *http.Request, _ []byte) string { return r.Method + " " + r.URL.RequestURI() }

// HTTP puts the injector in front of a server.
func (i *Injector) HTTP(name Name, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, rest.MaxBody))
		if err != nil {
			return // the caller broke off: the request never arrived
		}
		fault := i.next(HTTP, name(r, body))
		r.Body = io.NopCloser(bytes.NewReader(body))
		if fault.Late {
			r = r.WithContext(context.WithValue(r.Context(), hiddenKey{}, i.timing.Late))
		}
		i.serve(fault.Kind, w, r, next)
	})
}

// GivenUp is the header by which a caller says until when it awaits the answer, in milliseconds
// since 1970. No network carries a request for ever, and no server works at one for ever: what
// would take effect long after that is lost instead, so that [Timing.Settled] tells the truth on a
// busy machine, too.
const GivenUp = "X-Given-Up-At"

// carried returns the request as it arrives: what changes something takes effect in time, or not at
// all. It is nil when it has been on its way for too long already.
func (i *Injector) carried(r *http.Request) *http.Request {
	ms, err := strconv.ParseInt(r.Header.Get(GivenUp), 10, 64)
	if err != nil || r.Method == http.MethodGet {
		return r
	}
	until := time.UnixMilli(ms).Add(i.timing.Settled() - i.timing.Late)
	if time.Now().After(until) {
		return nil
	}
	return r.WithContext(rest.Until(r.Context(), until))
}

func (i *Injector) serve(kind Kind, w http.ResponseWriter, r *http.Request, next http.Handler) {
	serve := next.ServeHTTP
	next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r = i.carried(r); r == nil {
			panic(http.ErrAbortHandler)
		}
		serve(w, r)
	})
	switch kind {
	case TooMany:
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(i.timing.Retry.Seconds()))))
		http.Error(w, "too many requests, this one was not executed", http.StatusTooManyRequests)
	case ErrorBefore:
		badGateway(w)
	case CutBefore:
		reset(w)
	case Slow:
		i.hold(i.timing.Slow, nil) // it will happen, whether the caller waits or not
		next.ServeHTTP(w, r)
	case ErrorAfter:
		next.ServeHTTP(&answer{}, r)
		badGateway(w)
	case CutAfter:
		next.ServeHTTP(&answer{}, r)
		reset(w)
	case Silent:
		var a answer
		next.ServeHTTP(&a, r)
		i.hold(i.timing.Silent, r.Context().Done())
		a.send(w)
	default:
		next.ServeHTTP(w, r)
	}
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
	_ = cut(conn)
}

// errCut is what ends a conversation whose connection was cut.
var errCut = errors.New("connection cut on purpose")

// cut closes conn so that its peer sees a reset, and returns errCut.
func cut(conn net.Conn) error {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
	return errCut
}

// answer keeps what a handler answers. Its zero value is ready to use.
type answer struct {
	status int
	header http.Header
	body   bytes.Buffer
}

// Header returns the headers to be sent.
func (a *answer) Header() http.Header {
	if a.header == nil {
		a.header = http.Header{}
	}
	return a.header
}

// WriteHeader keeps the status.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Write keeps a part of the body.
func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

// send gives the answer to w.
func (a *answer) send(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.Header())
	a.WriteHeader(http.StatusOK) // unless it has a status by now
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes()) // a caller that is gone is the usual case
}
