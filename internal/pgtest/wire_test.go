package pgtest_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/pace"
	"github.com/amends-dev/amends/internal/pgtest"
)

// echo listens, answers every byte with itself, and tells on the returned channel what it has
// heard.
func echo(t *testing.T) (address string, heard <-chan byte) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	all := make(chan byte, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				for b := make([]byte, 1); ; {
					if _, err := io.ReadFull(c, b); err != nil {
						return
					}
					all <- b[0]
					if _, err := c.Write(b); err != nil {
						return
					}
				}
			}()
		}
	}()
	return "postgres://u@" + l.Addr().String() + "/db", all
}

// call opens a connection through a wire and makes sure that it can be heard both ways.
func call(t *testing.T, w *pgtest.Wire, heard <-chan byte) net.Conn {
	t.Helper()
	c := dial(t, w)
	say(t, c, 'x')
	<-heard
	if b, err := listen(c); b != 'x' {
		t.Fatalf("heard %q, %v", b, err)
	}
	return c
}

func dial(t *testing.T, w *pgtest.Wire) net.Conn {
	t.Helper()
	u, err := url.Parse(w.URL())
	if err != nil {
		t.Fatal(err)
	}
	c, err := new(net.Dialer).DialContext(context.WithoutCancel(t.Context()), "tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func say(t *testing.T, c net.Conn, b byte) {
	t.Helper()
	if _, err := c.Write([]byte{b}); err != nil {
		t.Fatal(err)
	}
}

func listen(c net.Conn) (byte, error) {
	b := make([]byte, 1)
	_, err := io.ReadFull(c, b)
	return b[0], err
}

// nothing wants that nothing arrives, which takes as long as one is ready to wait for it.
func nothing(t *testing.T, what string, c net.Conn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if b, err := listen(c); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: heard %q, %v, want nothing", what, b, err)
	}
}

// What is said on a silent connection is taken and not passed on, in the ways that are silent, and
// new connections are not affected.
func TestWireFallsSilent(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	address, heard := echo(t)
	w := pgtest.NewWire(t, address)
	c := call(t, w, heard)
	w.Silence(pgtest.Answers)
	say(t, c, 'a')
	if b := <-heard; b != 'a' {
		t.Errorf("the server heard %q, want a", b)
	}
	nothing(t, "answers are silent", c)
	w.Silence(pgtest.Requests)
	say(t, c, 'b')
	nothing(t, "both are silent", c)
	if len(heard) > 0 {
		t.Errorf("the server heard %q on a silent connection", <-heard)
	}
	call(t, w, heard)

	w.SilenceNew(pgtest.Both)
	c = dial(t, w)
	say(t, c, 'c')
	nothing(t, "it was silent from the beginning", c)
	w.SilenceNew(0)
	call(t, w, heard)
}

// Some of several fall silent, each of them once.
func TestWireSilencesSome(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	address, heard := echo(t)
	w := pgtest.NewWire(t, address)
	for range 5 {
		call(t, w, heard)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i, c := range []struct{ n, want int }{{2, 2}, {2, 2}, {0, 1}, {3, 0}} {
		if got := w.SilenceSome(r, c.n); got != c.want {
			t.Errorf("%d: of %d connections %d fell silent, want %d", i, c.n, got, c.want)
		}
	}
}

// A cut ends both ends; a lost message ends the connection it was on, and is not passed on.
func TestWireCuts(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	address, heard := echo(t)
	w := pgtest.NewWire(t, address)
	c := call(t, w, heard)
	w.Cut()
	if _, err := listen(c); err == nil {
		t.Error("a connection that was cut can be heard")
	}
	c = call(t, w, heard)
	w.LoseNext(pgtest.Requests)
	say(t, c, 'B')
	if _, err := listen(c); err == nil || w.Lost() != 1 || len(heard) > 0 {
		t.Errorf("the lost request: %v, %d lost, the server heard %d bytes", err, w.Lost(), len(heard))
	}
	c = call(t, w, heard)
	w.LoseNext(pgtest.Answers)
	say(t, c, '2')
	if _, err := listen(c); err == nil || w.Lost() != 2 || <-heard != '2' {
		t.Errorf("the lost answer: %v, %d lost", err, w.Lost())
	}
}

// New connections lead where they are led.
func TestWireLeadsElsewhere(t *testing.T) {
	pace.Day(t)
	t.Parallel()
	before, heard := echo(t)
	after, heardThere := echo(t)
	w := pgtest.NewWire(t, before)
	call(t, w, heard)
	w.Lead(t, after)
	call(t, w, heardThere)
}
