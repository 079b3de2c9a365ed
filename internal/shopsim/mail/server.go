package mail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"

	"github.com/emersion/go-smtp"
)

// maxMessage is the size in bytes beyond which a message is refused.
const maxMessage = 1 << 20

// Around runs store, which puts a received message about order into the
// mailbox, and decides what the sender hears: the error it returns, or
// nothing when it has closed conn.
type Around func(order string, conn net.Conn, store func() error) error

// Server is an SMTP server on a loopback port of its own.
type Server struct {
	// Addr is where it answers, host and port.
	Addr string

	smtp     *smtp.Server
	listener net.Listener
	done     chan error
}

// Listen starts a server that fills box. A nil around just stores. The context
// bounds the start only; the server runs until it is closed.
func Listen(ctx context.Context, box *Mailbox, around Around) (*Server, error) {
	if around == nil {
		around = func(_ string, _ net.Conn, store func() error) error { return store() }
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on a loopback port: %w", err)
	}
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return &session{box: box, around: around, conn: c.Conn()}, nil
	}))
	server.Domain = "mail.example"
	server.MaxMessageBytes = maxMessage
	server.ErrorLog = log.New(io.Discard, "", 0) // senders that are killed are the point here
	s := &Server{Addr: l.Addr().String(), smtp: server, listener: l, done: make(chan error, 1)}
	go func() { s.done <- server.Serve(l) }()
	return s, nil
}

// Close stops the server and cuts its connections.
func (s *Server) Close() error {
	err := s.smtp.Close()
	// A server that is closed before its goroutine got going does not know its
	// listener yet, and would accept for ever.
	_ = s.listener.Close()
	if err := errors.Join(err, <-s.done); err != nil {
		return fmt.Errorf("stop the mail server: %w", err)
	}
	return nil
}

// session is one connection's conversation.
type session struct {
	box    *Mailbox
	around Around
	conn   net.Conn
	to     []string
}

// Reset forgets the message under way.
func (s *session) Reset() { s.to = nil }

// Logout ends the conversation.
func (s *session) Logout() error { return nil }

// Mail accepts any sender.
func (s *session) Mail(string, *smtp.MailOptions) error { return nil }

// Rcpt accepts any recipient whose address does not bounce.
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if Bounces(to) {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such mailbox"}
	}
	s.to = append(s.to, to)
	return nil
}

// Data receives the content and stores it. What ends before its final dot is
// not a message and leaves nothing behind.
func (s *session) Data(r io.Reader) error {
	content, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	msg, err := parse(content)
	if err != nil {
		return &smtp.SMTPError{Code: 554, EnhancedCode: smtp.EnhancedCode{5, 6, 0}, Message: err.Error()}
	}
	return s.around(msg.Order, s.conn, func() error {
		for _, to := range s.to {
			if _, err := s.box.Deliver(to, content); err != nil {
				return err
			}
		}
		return nil
	})
}
