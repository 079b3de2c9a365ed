package mail_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"

	"github.com/amends-dev/amends/internal/shopsim/mail"
)

func setup(t *testing.T, around mail.Around) (*mail.Server, *mail.Mailbox, string) {
	t.Helper()
	dir := t.TempDir()
	box, err := mail.OpenMailbox(dir)
	if err != nil {
		t.Fatal(err)
	}
	server, err := mail.Listen(t.Context(), box, around)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server, box, dir
}

func letter(order string) mail.Letter {
	return mail.Letter{
		From: "shop@shop.example", To: "ada@post.example", MessageID: "receipt." + order + "@shop.example",
		Order: "shop:order:" + order, Subject: "Your order " + order, Text: "Merci, Léa.\n.\nYour invoice is inv_0001.",
	}
}

// The server keeps both copies of one Message-ID, and the mailbox finds them
// by Message-ID and by order.
func TestBothCopiesAreKept(t *testing.T) {
	t.Parallel()
	server, box, _ := setup(t, nil)
	for _, order := range []string{"1", "2", "1"} {
		if err := mail.Send(t.Context(), server.Addr, letter(order), nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(box.Messages()); n != 3 {
		t.Errorf("%d messages, want 3", n)
	}
	for _, found := range [][]mail.Message{box.Find("receipt.1@shop.example"), box.Find("<receipt.1@shop.example>"), box.About("shop:order:1")} {
		if len(found) != 2 || found[0].To != "ada@post.example" || found[0].File == found[1].File {
			t.Errorf("found %+v", found)
		}
	}
	if found := box.About("shop:order:3"); len(found) != 0 {
		t.Errorf("found %+v", found)
	}
	content, err := os.ReadFile(box.Messages()[0].File)
	if err != nil || !strings.Contains(string(content), "Merci, Léa.\r\n.\r\nYour invoice is inv_0001.") {
		t.Errorf("%v: the file reads %q", err, content)
	}
}

// What was delivered is in the folder, for whoever opens it next.
func TestReopen(t *testing.T) {
	t.Parallel()
	server, box, dir := setup(t, nil)
	for i := range 12 {
		if err := mail.Send(t.Context(), server.Addr, letter(fmt.Sprint(i)), nil); err != nil {
			t.Fatal(err)
		}
	}
	again, err := mail.OpenMailbox(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(again.Messages()), fmt.Sprint(box.Messages()); got != want {
		t.Errorf("reopened:\n%s\nwant:\n%s", got, want)
	}
	if _, err := again.Deliver("bo@post.example", letter("1").Bytes()); err != nil {
		t.Fatal(err)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "new", "*")); len(files) != 13 {
		t.Errorf("%d files after one more delivery, want 13", len(files))
	}
}

// An address that bounces is refused with 550 before anything is sent.
func TestBounce(t *testing.T) {
	t.Parallel()
	server, box, _ := setup(t, nil)
	l := letter("1")
	l.To = "gone@" + mail.BounceDomain
	sent := false
	err := mail.Send(t.Context(), server.Addr, l, func() error { sent = true; return nil })
	var refused *smtp.SMTPError
	if !errors.As(err, &refused) || refused.Code != 550 || sent {
		t.Errorf("got %v, sent %v, want a 550 before sending", err, sent)
	}
	if len(box.Messages()) != 0 {
		t.Error("the refused message is in the mailbox")
	}
}

// A sender that dies in the middle of its message leaves nothing behind.
func TestHalfAMessage(t *testing.T) {
	t.Parallel()
	server, box, _ := setup(t, nil)
	addr, err := net.ResolveTCPAddr("tcp", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.DialTCP("tcp", nil, addr)
	if err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(conn)
	for _, line := range []string{"", "HELO me", "MAIL FROM:<a@shop.example>", "RCPT TO:<b@post.example>", "DATA"} {
		if line != "" {
			fmt.Fprintf(conn, "%s\r\n", line)
		}
		if _, err := answers.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprintf(conn, "Message-ID: <half@shop.example>\r\n\r\nThis ends wit")
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	for err == nil { // until the server has dealt with it and hung up
		_, err = answers.ReadString('\n')
	}
	if got := box.Messages(); len(got) != 0 {
		t.Errorf("the mailbox holds %+v", got)
	}
}

// The sender's deadline ends a wait for an answer, and says so.
func TestDeadline(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	server, box, _ := setup(t, func(_ string, _ net.Conn, store func() error) error {
		err := store()
		cancel()
		<-release
		return err
	})
	defer close(release)
	if err := mail.Send(ctx, server.Addr, letter("1"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	if len(box.Messages()) != 1 {
		t.Error("the message was accepted, but is not in the mailbox")
	}
}

// An error of sending stops the letter, and is what the sender hears.
func TestSendingRefused(t *testing.T) {
	t.Parallel()
	server, box, _ := setup(t, nil)
	late := errors.New("too late to send")
	if err := mail.Send(t.Context(), server.Addr, letter("1"), func() error { return late }); !errors.Is(err, late) {
		t.Errorf("got %v, want %v", err, late)
	}
	if err := mail.Send(t.Context(), server.Addr, letter("2"), nil); err != nil {
		t.Fatal(err)
	}
	if got := box.Messages(); len(got) != 1 || got[0].Order != "shop:order:2" {
		t.Errorf("the mailbox holds %+v, want the second letter only", got)
	}
}

// A server can be closed at any moment, also before it has begun to serve.
func TestCloseAtOnce(t *testing.T) {
	t.Parallel()
	box, err := mail.OpenMailbox(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		server, err := mail.Listen(t.Context(), box, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
