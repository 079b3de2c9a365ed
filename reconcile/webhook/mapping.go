package webhook

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/faults"
	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/reconcile/inbox"
)

// Mapping says where the events of a sender keep what we need: paths of field names from the top of
// the body, like data.id. A field that is named exactly so wins; without one, a single field that differs
// only in case counts. The zero value of a field means its default.
type Mapping struct {
	// Topic is the path of what happened: order.updated. Default: type.
	Topic string
	// Body is the path of the object; a dot is the whole body. Default: data.
	Body string
	// Type is the type of all objects. Default: the topic up to its last dot.
	Type string
	// ID is the path of the object's id. Default: id within Body.
	ID string
	// EventID is the path of the event's own id, by which its repetitions are known. Default: none;
	// it is known by its content. Standard Webhooks have it in a header.
	EventID string
	// Tenant is the path of the account. Default: there is only one. With a path, an event without
	// is malformed.
	Tenant string
	// Version is the path of the object's version, from the top as all paths: data.version, not
	// version. Default: it has none, and every event is a hint, as is one in which nothing is there.
	Version string
	// Clock is the kind of the version: CounterClock, ObjectClock, or EventClock when Version is
	// the event's own time and the object has none. Default: CounterClock, and what is no whole
	// number is no version.
	Clock inbox.Clock
	// Step is the resolution of a version that is a time, when that is coarser than it is written.
	Step time.Duration
	// At is the path of the time when it happened. Default: timestamp. Nothing need be there.
	At string
	// Partial: Body is a part of the object, or a notice, so every event is a hint. Delta: Body is
	// a change to the object as it was at the version before; see inbox.Policy. Default: Body is
	// the whole object.
	Partial, Delta bool
	// Deleted lists the topics which say that the object is gone.
	Deleted []string
}

// wholeBody as Mapping.Body says that the body is the object.
const wholeBody = "."

func (m Mapping) withDefaults() Mapping {
	m.Topic = cmp.Or(m.Topic, "type")
	m.Body = cmp.Or(m.Body, "data")
	m.ID = cmp.Or(m.ID, strings.TrimPrefix(m.Body+".id", wholeBody+"."))
	m.At = cmp.Or(m.At, "timestamp")
	if m.Version != "" {
		m.Clock = cmp.Or(m.Clock, inbox.CounterClock)
	}
	m.Deleted = slices.Clone(m.Deleted)
	return m
}

// validate reports everything that is wrong, in one error.
func (m *Mapping) validate() error {
	var f faults.List
	for field, path := range map[string]string{
		"Topic": m.Topic, "Body": m.Body, "ID": m.ID, "EventID": m.EventID, "Tenant": m.Tenant, "Version": m.Version, "At": m.At,
	} {
		broken := path != "" && (field != "Body" || path != wholeBody) && slices.Contains(strings.Split(path, "."), "")
		f.Whenf(broken, "%s is %q; a path is names with dots between them", field, path)
	}
	clocks := []inbox.Clock{inbox.NoClock, inbox.CounterClock, inbox.ObjectClock, inbox.EventClock}
	f.Whenf(!slices.Contains(clocks, m.Clock), "Clock is %q, which is none", m.Clock)
	f.Whenf(m.Version == "" && m.Clock != inbox.NoClock, "Clock is %q, but there is no path for the Version", m.Clock)
	f.Whenf(m.Partial && m.Delta, "Partial and Delta are both set; a change is no hint")
	f.Whenf(m.Step < 0, "Step is %s; it must not be negative", m.Step)
	if err := f.Err(); err != nil {
		return fmt.Errorf("mapping:\n%w", err)
	}
	return nil
}

// event reads a body.
func (m *Mapping) event(body raw) (intake.Event, error) {
	if !isObject(body) {
		return intake.Event{}, errObject
	}
	read := words{body: body}
	e := intake.Event{Topic: read.at(m.Topic), Payload: m.payload(), Version: m.version(read.at(m.Version))}
	e.Object.ID, e.At = read.at(m.ID), timeOf(word(read.at(m.At)))
	e.Deleted = slices.Contains(m.Deleted, e.Topic)
	if e.Object.Type = m.Type; m.Type == "" {
		e.Object.Type = e.Topic[:max(0, strings.LastIndexByte(e.Topic, '.'))]
	}
	if m.Tenant != "" {
		if e.Object.Tenant = read.at(m.Tenant); e.Object.Tenant == "" && read.err == nil {
			return intake.Event{}, errors.New("it names no tenant")
		}
	}
	switch { // what a path that is wrong does is said
	case e.Topic == "" && m.Type == "":
		e.Why = fmt.Sprintf("it names no object: nothing is at %q, where the Mapping's Topic should be", m.Topic)
	case e.Object.ID == "":
		e.Why = fmt.Sprintf("it names no object: nothing is at %q, where the Mapping's ID should be", m.ID)
	case m.Version != "" && e.Version.Clock == inbox.NoClock:
		e.Why = fmt.Sprintf("no version is at %q, where the Mapping's Version should be", m.Version)
	}
	e.ID = read.at(m.EventID)
	e.Dedupe = byID(e.ID)
	object, err := at(body, strings.TrimPrefix(m.Body, wholeBody))
	if e.Body = object; object == nil {
		e.Body, e.Payload = body, intake.Thin // a notice without the object
	}
	return e, cmp.Or(read.err, err)
}

// payload is what the body of every event is worth.
func (m *Mapping) payload() intake.Payload {
	switch {
	case m.Partial:
		return intake.Thin
	case m.Delta:
		return intake.Delta
	default:
		return intake.Whole
	}
}

// version reads a version; one that cannot be read is none, and the event a hint.
func (m *Mapping) version(text string) inbox.Version {
	if m.Clock == inbox.CounterClock {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return inbox.Version{}
		}
		return inbox.Counter(n)
	}
	v := versionAt(word(text), m.Step)
	if v.Clock != inbox.NoClock {
		v.Clock = m.Clock
	}
	return v
}
