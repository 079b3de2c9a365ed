package outside

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// BounceDomain is the domain whose addresses the mailbox refuses.
const BounceDomain = "bounce.example"

// CodeBounced (422): there is no such address.
const CodeBounced = "bounced"

// Bounces reports whether mail to this address is refused.
func Bounces(address string) bool {
	return strings.HasSuffix(strings.ToLower(address), "@"+BounceDomain)
}

// Letter is the body of POST /mails.
type Letter struct {
	ID      string `json:"id"` // the sender's name for it
	From    string `json:"from"`
	To      string `json:"to"`
	Order   string `json:"order"` // the reference of the order it is about
	Subject string `json:"subject"`
	Text    string `json:"text"`
}

// Message is a letter that arrived.
type Message struct {
	Number int `json:"number"` // of its arrival, from 1
	Letter
}

// ExternalID is the sender's name for the letter.
func (m Message) ExternalID() string { return m.ID }

// Mailbox keeps what was sent. Its zero value is empty.
type Mailbox struct {
	// Copy gets each letter as a text, for a person to read.
	Copy io.Writer
	// Takes is how long a sender talks with it before it takes a letter, as with a real mail server: one
	// who is gone by then has sent none.
	Takes time.Duration

	mu  sync.Mutex
	all []Message
}

// Deliver stores a letter. It never looks whether an equal one is already there.
func (m *Mailbox) Deliver(l Letter) (Message, error) {
	if Bounces(l.To) {
		return Message{}, refuse(http.StatusUnprocessableEntity, CodeBounced, "there is no mailbox %s", l.To)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	msg := Message{len(m.all) + 1, l}
	if m.Copy != nil {
		if _, err := fmt.Fprintf(m.Copy, "X-Order: %s\nMessage-ID: %s\nFrom: %s\nTo: %s\nSubject: %s\n\n%s\n\n", l.Order, l.ID, l.From, l.To, l.Subject, l.Text); err != nil {
			return Message{}, err
		}
	}
	m.all = append(m.all, msg)
	return msg, nil
}

// Messages returns all messages in the order of arrival.
func (m *Mailbox) Messages() []Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.all)
}

// About returns the messages about an order, by its reference.
func (m *Mailbox) About(order string) []Message {
	return slices.DeleteFunc(m.Messages(), func(msg Message) bool { return msg.Order != order })
}

// Handler takes letters.
func (m *Mailbox) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /mails", sends(func(r *http.Request, l Letter) (any, error) {
		select {
		case <-time.After(m.Takes):
			return m.Deliver(l)
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}))
	return mux
}
