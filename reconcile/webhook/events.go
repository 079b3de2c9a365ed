package webhook

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/reading"
	"github.com/amends-dev/amends/reconcile/inbox"
)

// events returns what a verified delivery is stored as: at least one event, whatever it says. Once
// it is verified, nothing about it is a reason to refuse it: it would only be sent again.
func (s *source) events(m message, unpacked error, secret string) []intake.Event {
	events, err := s.parse(m, unpacked)
	switch {
	case err != nil:
		events = []intake.Event{malformed(m.Body, err)}
	case len(events) == 0:
		events = []intake.Event{{Body: m.Body, Disposition: intake.Ignored, Why: "a handshake: it speaks of no object"}}
	}
	for i := range events {
		e := s.complete(events[i])
		e.Received, e.Secret = m.Received, secret
		e.Dedupe = s.identity(&e)
		if e.Object.ID == "" && err == nil && !s.Provider.several && json.Valid(m.Body) && utf8.Valid(m.Body) {
			e.Body = m.Body // all of it: a Mapping that is right may read it again
		}
		events[i] = e
	}
	return once(events)
}

// Reread reads a delivery of the source that named no object again, as s is now: [inbox.Processor] asks it when a person
// replays it. The error says why nothing is named still.
func (s *Sender) Reread(of *inbox.Source, d *intake.Delivery) (*intake.Event, error) {
	config := *s
	config.volatile, config.begin = of.Policy.Volatile, of.Begin
	r, err := newSource(named{of.Name, config})
	if err != nil {
		return nil, err
	}
	events := r.events(message{Header: http.Header{}, Body: d.Body, Received: d.Received, Types: s.Types}, nil, d.Secret)
	if e := &events[0]; len(events) == 1 && e.Object.ID != "" {
		e.ID, e.Dedupe = cmp.Or(e.ID, d.ID), intake.DigestOf("read again", d.Name())
		return e, nil
	}
	return nil, errors.New(cmp.Or(events[0].Why, "several objects are named"))
}

// parse calls the provider's parser. A parser that panics met something it cannot read.
func (s *source) parse(m message, unpacked error) (events []intake.Event, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the parser of %s panicked", s.Provider.name)
		}
	}()
	if unpacked != nil {
		return nil, unpacked
	}
	text, err := reading.Text(m.Header.Get("Content-Type"), m.Body)
	if err != nil {
		return nil, err
	}
	decoded := !bytes.HasSuffix(m.Body, text) // from another charset, and not just without a mark
	m.Body = text
	if s.Provider.several {
		err = fits(longest(text)) // before they are read, which takes a second where there are so many
	}
	if err == nil {
		events, err = s.Provider.parse(m)
	}
	if err == nil {
		err = fits(len(events))
	}
	for i := range events {
		if e := &events[i]; decoded && e.Disposition == "" {
			hint(e, "its charset is told by a header only, which is not signed")
		}
	}
	return events, err
}

// maxEvents bounds the events of one delivery: all are stored in one transaction, before the answer.
const maxEvents = 1000

// fits refuses a delivery of n events before they are made.
func fits(n int) error {
	if n > maxEvents {
		return fmt.Errorf("it holds %d events, and one delivery may hold %d", n, maxEvents)
	}
	return nil
}

// longest returns how many elements the longest array of a body has.
func longest(body []byte) (most int) {
	var open []int // the elements of each array that is open; -1 for an object
	add := func(n int) {
		if last := len(open) - 1; last >= 0 && open[last] >= 0 {
			open[last] += n
			most = max(most, open[last])
		}
	}
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			for i++; i < len(body) && body[i] != '"'; i++ {
				if body[i] == '\\' {
					i++
				}
			}
		case '[':
			open = append(open, 0)
			if rest := bytes.TrimLeft(body[i+1:], " \t\r\n"); len(rest) > 0 && rest[0] != ']' {
				add(1)
			}
		case '{':
			open = append(open, -1)
		case ',':
			add(1)
		case ']', '}':
			open = open[:max(0, len(open)-1)]
		}
	}
	return most
}

// complete adds what the source knows and decides what needs no judge.
func (s *source) complete(e intake.Event) intake.Event {
	if err := s.check(&e); err != nil {
		e = malformed(e.Body, err)
	}
	e.Object.Source = s.Name
	if e.Version.Clock != inbox.NoClock {
		e.Version.Epoch = s.Epoch
	}
	if s.Headers == HeadersHint && s.shares() && e.Disposition == "" {
		hint(&e, "its tenant is told by a header only, which is not signed")
		e.Fingerprint = intake.Digest{}
	}
	switch o := e.Object; {
	case e.Disposition != "":
	case !s.knows(o.Tenant):
		e.Disposition, e.Why = intake.Unknown, "its tenant is not among the source's Tenants"
	case len(s.Types) > 0 && !slices.Contains(s.Types, o.Type):
		e.Disposition, e.Why = intake.Unknown, "its type is not among the source's Types"
	case s.State == Ignoring:
		e.Disposition, e.Why = intake.Ignored, "the source is switched off"
	case s.tooOld(&e):
		e.Disposition, e.Why = intake.Ignored, "it happened before "+s.begin.UTC().Format(time.RFC3339)+", the source's Begin: what is older is left to comparisons"
	}
	return e
}

// tooOld reports whether an event says that it happened before the source's Begin.
func (s *source) tooOld(e *intake.Event) bool {
	at := e.At
	if at.IsZero() {
		at = e.Version.Time()
	}
	return !at.IsZero() && at.Before(s.begin)
}

// check refuses what no store could hold or no gate could judge, and takes the fingerprint.
func (s *source) check(e *intake.Event) error {
	for _, text := range []string{e.Object.Tenant, e.Object.Type, e.Object.ID, e.Topic, e.ID} {
		if !sound(text) {
			return fmt.Errorf("a name in it is longer than %d bytes or cannot be printed", maxWord)
		}
	}
	if e.Disposition == "" && (e.Object.Type == "" || e.Object.ID == "") {
		e.Disposition, e.Why = intake.Unknown, cmp.Or(e.Why, "it names no object")
		if s.State != Ignoring && slices.Contains(s.Types, e.Object.Type) { // it should name one
			e.Disposition = intake.Malformed
		}
	}
	if !utf8.Valid(e.Body) { // in what is not read
		e.Body, e.Payload, e.Version = asText(e.Body), intake.Thin, inbox.Version{}
		e.Why = cmp.Or(e.Why, "its body has a byte that is not UTF-8")
	}
	if e.Payload != intake.Thin {
		var err error
		if e.Fingerprint, err = intake.Fingerprint(e.Body, slices.Concat(s.Provider.volatile, s.volatile)...); err == nil {
			return nil
		}
		hint(e, err.Error()) // it is nested too deep to be compared; the source can be asked all the same
	}
	if !json.Valid(e.Body) {
		return errors.New("it is not JSON")
	}
	return nil
}

// malformed is what a delivery is kept as that was verified and cannot be read.
func malformed(body []byte, why error) intake.Event {
	return intake.Event{Body: asText(body), Payload: intake.Thin, Disposition: intake.Malformed, Why: why.Error()}
}

// idle counts the events that are kept because they could not be read, and those that name no object of a
// source. Greetings and tests do not; if nothing does, a mapping is wrong.
func idle(events []intake.Event) (unreadable, nameless int) {
	for i := range events {
		switch e := &events[i]; {
		case e.Disposition == intake.Malformed:
			unreadable++
		case e.Disposition == intake.Unknown && e.Object.ID == "":
			nameless++
		}
	}
	return unreadable, nameless
}

// asText writes bytes as a JSON string, in base64 where they are no text.
func asText(body []byte) raw {
	text := string(body)
	if !utf8.Valid(body) {
		text = "base64:" + base64.StdEncoding.EncodeToString(body)
	}
	kept, err := json.Marshal(text)
	if err != nil {
		kept = []byte(`""`) // a string can always be written
	}
	return kept
}

// byContent is the dedupe digest of a delivery without an id: equal content about one object is one
// event.
func byContent(e *intake.Event) intake.Digest {
	content, err := intake.Fingerprint(e.Body)
	if err != nil {
		content = intake.DigestOf(string(e.Body))
	}
	return intake.DigestOf("content", e.Object.Tenant, e.Topic, e.Object.Type, e.Object.ID, string(content[:]))
}

// byID is the dedupe digest of an event that its provider gave an id; zero when it did not.
func byID(parts ...string) intake.Digest {
	if len(parts) == 0 || slices.Contains(parts, "") {
		return intake.Digest{}
	}
	return intake.DigestOf(append([]string{"id"}, parts...)...)
}

// once drops events that a delivery tells twice in the same words.
func once(events []intake.Event) []intake.Event {
	type told struct {
		tenant string
		dedupe intake.Digest
		body   string
	}
	seen := make(map[told]bool, len(events))
	return slices.DeleteFunc(events, func(e intake.Event) bool {
		t := told{e.Object.Tenant, e.Dedupe, string(e.Body)}
		again := seen[t]
		seen[t] = true
		return again
	})
}
