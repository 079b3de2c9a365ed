package mail

import (
	"fmt"
	"net/mail"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
)

// Message is one message in the mailbox.
type Message struct {
	File  string `json:"file"` // where a person can read it
	ID    string `json:"id"`   // the Message-ID without the angle brackets
	Order string `json:"order"`
	To    string `json:"to"` // the envelope's recipient
}

// Mailbox is a folder with one file for each message, in the manner of a
// Maildir: written in tmp, then moved to new under a name used once.
//
// Opening reads what is there; after that a Mailbox knows what went through
// itself. Its methods may be called from several goroutines.
type Mailbox struct {
	dir string

	mu      sync.Mutex
	all     []Message
	last    int
	byID    map[string][]Message
	byOrder map[string][]Message
}

// OpenMailbox opens the mailbox in dir, and creates it when it is not there.
func OpenMailbox(dir string) (*Mailbox, error) {
	for _, sub := range []string{"tmp", "new"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o750); err != nil {
			return nil, fmt.Errorf("mailbox: %w", err)
		}
	}
	m := &Mailbox{dir: dir, byID: map[string][]Message{}, byOrder: map[string][]Message{}}
	files, err := filepath.Glob(filepath.Join(dir, "new", "*.eml"))
	if err != nil {
		return nil, fmt.Errorf("mailbox: %w", err)
	}
	sort.Strings(files)
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("mailbox: %w", err)
		}
		msg, err := parse(content)
		if err != nil {
			return nil, fmt.Errorf("mailbox: %s: %w", file, err)
		}
		if _, err := fmt.Sscanf(filepath.Base(file), "%d.eml", &m.last); err != nil {
			return nil, fmt.Errorf("mailbox: %s is not named as a message here: %w", file, err)
		}
		msg.File = file
		m.index(msg)
	}
	return m, nil
}

// parse reads what the mailbox wants to know of a message.
func parse(content []byte) (Message, error) {
	msg, err := mail.ReadMessage(strings.NewReader(string(content)))
	if err != nil {
		return Message{}, fmt.Errorf("not a message: %w", err)
	}
	return Message{
		ID:    strings.Trim(msg.Header.Get("Message-ID"), "<> "),
		Order: msg.Header.Get(OrderHeader),
		To:    msg.Header.Get("Delivered-To"),
	}, nil
}

func (m *Mailbox) index(msg Message) {
	m.all = append(m.all, msg)
	m.byID[msg.ID] = append(m.byID[msg.ID], msg)
	m.byOrder[msg.Order] = append(m.byOrder[msg.Order], msg)
}

// Deliver stores a message for one recipient. It never looks whether an equal
// one is already there.
func (m *Mailbox) Deliver(to string, content []byte) (Message, error) {
	content = append([]byte("Delivered-To: "+to+"\r\n"), content...)
	msg, err := parse(content)
	if err != nil {
		return msg, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	name := fmt.Sprintf("%08d.eml", m.last)
	tmp := filepath.Join(m.dir, "tmp", name)
	msg.File = filepath.Join(m.dir, "new", name)
	if err := os.WriteFile(tmp, content, 0o600); err != nil {
		return msg, fmt.Errorf("mailbox: %w", err)
	}
	if err := os.Rename(tmp, msg.File); err != nil {
		return msg, fmt.Errorf("mailbox: %w", err)
	}
	m.index(msg)
	return msg, nil
}

// Messages returns all messages in the order of arrival.
func (m *Mailbox) Messages() []Message { return m.copy(func() []Message { return m.all }) }

// Find returns the messages with this Message-ID.
func (m *Mailbox) Find(messageID string) []Message {
	return m.copy(func() []Message { return m.byID[strings.Trim(messageID, "<>")] })
}

// About returns the messages about this order, by its reference.
func (m *Mailbox) About(order string) []Message {
	return m.copy(func() []Message { return m.byOrder[order] })
}

func (m *Mailbox) copy(of func() []Message) []Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Message(nil), of()...)
}
