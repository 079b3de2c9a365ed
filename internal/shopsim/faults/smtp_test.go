package faults_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/emersion/go-smtp"

	"github.com/amends-dev/amends/internal/shopsim/faults"
	"github.com/amends-dev/amends/internal/shopsim/mail"
)

// order finds an order whose first message meets this kind.
func order(t *testing.T, kind faults.Kind) string {
	t.Helper()
	for i := range 10000 {
		ref := fmt.Sprintf("shop:order:%d", i)
		if plan.At(faults.SMTP, "mail "+ref, 1).Kind == kind {
			return ref
		}
	}
	t.Fatalf("no order meets %s", kind)
	return ""
}

// postOffice starts a mail server behind an injector with the plan,
// and calls stored after each message that went into the mailbox.
func postOffice(t *testing.T, stored func()) (*mail.Server, *mail.Mailbox) {
	t.Helper()
	box, err := mail.OpenMailbox(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	injector := faults.New(plan, quick)
	server, err := mail.Listen(t.Context(), box, func(order string, conn net.Conn, store func() error) error {
		return injector.SMTP(order, conn, func() error {
			defer stored()
			return store()
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		injector.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server, box
}

func letterAbout(ref string) mail.Letter {
	return mail.Letter{From: "shop@shop.example", To: "ada@post.example", MessageID: "m@shop.example", Order: ref, Text: "hello"}
}

// Each kind of fault, as a real SMTP client meets it: what it is told, and
// whether the message is in the mailbox.
func TestSMTPFaults(t *testing.T) {
	t.Parallel()
	isCut := func(err error) bool { return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) }
	for _, c := range []struct {
		kind   faults.Kind
		told   func(error) bool
		stored int
	}{
		{faults.TooMany, func(err error) bool {
			var said *smtp.SMTPError
			return errors.As(err, &said) && said.Code == 451 && said.Temporary()
		}, 0},
		{faults.CutBefore, isCut, 0},
		{faults.CutAfter, isCut, 1},
		{faults.Slow, func(err error) bool { return err == nil }, 1},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			t.Parallel()
			server, box := postOffice(t, func() {})
			ref, sent := order(t, c.kind), false
			err := mail.Send(t.Context(), server.Addr, letterAbout(ref), func() error { sent = true; return nil })
			if !c.told(err) || !sent {
				t.Errorf("the sender heard %v, sent %v", err, sent)
			}
			if got := len(box.About(ref)); got != c.stored {
				t.Errorf("%d messages in the mailbox, want %d", got, c.stored)
			}
		})
	}
}

// Silence: the message is in the mailbox, and the sender hears nothing before
// it gives up.
func TestSMTPSilence(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	server, box := postOffice(t, cancel)
	ref := order(t, faults.Silent)
	if err := mail.Send(ctx, server.Addr, letterAbout(ref), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the sender to have given up", err)
	}
	if got := len(box.About(ref)); got != 1 {
		t.Errorf("%d messages in the mailbox, want 1", got)
	}
}
