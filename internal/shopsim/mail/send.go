package mail

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/emersion/go-smtp"
)

// Send delivers one letter to the SMTP server at addr and returns when the
// server has accepted it.
//
// sending, when not nil, is called just before the content leaves, and stops it
// by returning an error. An error until then means that the letter was not
// sent. After it, an error that holds an *smtp.SMTPError is the server's word
// that it did not take the letter, for now (4xx) or for good (5xx), and any
// other error leaves open whether it did.
func Send(ctx context.Context, addr string, l Letter, sending func() error) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("send mail: %w", err)
	}
	// The client sets deadlines of its own, so ours closes the connection.
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	client := smtp.NewClient(conn)
	defer func() { _ = client.Close() }()
	if err := submit(client, l, sending); err != nil {
		if ctx.Err() != nil {
			err = errors.Join(ctx.Err(), err)
		}
		return fmt.Errorf("send mail about %s: %w", l.Order, err)
	}
	_ = client.Quit() // the letter is delivered whatever comes of the goodbye
	return nil
}

func submit(client *smtp.Client, l Letter, sending func() error) error {
	if err := client.Mail(l.From, nil); err != nil {
		return err
	}
	if err := client.Rcpt(l.To, nil); err != nil {
		return err
	}
	body, err := client.Data()
	if err != nil {
		return err
	}
	if sending != nil {
		if err := sending(); err != nil {
			return err
		}
	}
	if _, err := body.Write(l.Bytes()); err != nil {
		return err
	}
	return body.Close()
}
