package scan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/plan"
)

// Topic is the topic of events that come from an incremental sweep.
const Topic = "sweep"

// event makes an event of an object that was listed. Two listings of one state make one event: what
// identifies it is what the object says, not when it was read.
func (s *Source) event(o *Listed, now time.Time) intake.Event {
	object := s.Object
	object.ID = o.ID
	e := intake.Event{
		Object: object, Topic: Topic, Payload: intake.Whole, Deleted: o.Deleted,
		Version: o.Version, Body: o.Body, Received: now,
	}
	if len(o.Body) > 0 {
		var err error
		if e.Fingerprint, err = intake.Fingerprint(o.Body, s.Volatile...); err != nil {
			e.Body = nil
		}
	}
	if len(e.Body) == 0 { // or what cannot be read: the source is asked
		e.Payload = intake.Thin
	}
	e.Dedupe = intake.DigestOf(Topic, object.Tenant, object.Type, object.ID, o.Version.Revision(), stamp(o.Changed),
		strconv.FormatBool(o.Deleted), string(e.Fingerprint[:]))
	return e
}

// stamp is a time as an identity has it.
func stamp(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

// Fingerprint digests fields, with the version of the mapping that made them. Equal ones say the
// same.
func Fingerprint(mapping string, f plan.Fields) intake.Digest {
	parts := make([]string, 1, 1+2*len(f))
	parts[0] = mapping
	for _, name := range slices.Sorted(maps.Keys(f)) {
		parts = append(parts, name, f[name])
	}
	return intake.DigestOf(parts...)
}

// sighting makes a row of an object. One that cannot be read has the key that its name makes.
func (s *Sweep) sighting(o *Listed) Sighting {
	truth, err := want(s.Source.Want, o)
	if err != nil || truth.Key == "" || truth.Unreadable != "" {
		object := s.Source.Object
		object.ID = o.ID
		return Sighting{Key: cmp.Or(truth.Key, object.String()), ID: o.ID, Revision: o.Version.Revision(), Flags: Unreadable, Created: o.Changed}
	}
	row := Sighting{Key: truth.Key, ID: o.ID, Revision: cmp.Or(truth.Revision, o.Version.Revision()), Created: o.Changed, Fields: truth.Fields,
		Fingerprint: Fingerprint(s.Mapping, truth.Fields)}
	if truth.Wanted {
		row.Flags |= Wanted
	}
	return row
}

// want asks what an object's document should say. An adapter that panics could not read the object.
func want(ask func(*Listed) (plan.Truth, error), o *Listed) (t plan.Truth, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the adapter panicked: %v", r)
		}
	}()
	return ask(o)
}

// document makes a row of a document.
func document(mapping string, d *plan.Document) Sighting {
	row := Sighting{Key: d.Key, ID: d.ID, Revision: d.Revision, Created: d.Created, Fields: d.Fields, Fingerprint: Fingerprint(mapping, d.Fields)}
	for flag, set := range map[Flags]bool{Void: d.Void, Locked: d.Locked, Foreign: d.Foreign} {
		if set {
			row.Flags |= flag
		}
	}
	return row
}
