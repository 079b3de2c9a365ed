package webhook

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/amends-dev/amends/reconcile"
)

// GitHub returns the provider for GitHub's webhooks, of either content type. The type of an object is the event's
// name in the singular: issue, pull_request, issue_comment. Its version is updated_at, in seconds; a deletion does not
// raise it, so it is a hint, as is every object without one. Events without an object of their own, such as
// push, are stored as unknown.
//
// The signature covers the body and no time; event and delivery id are headers that nobody signed. An event is
// the same as another when the delivery id is, which a redelivery keeps. GitHub repeats nothing by itself: what
// it could not deliver is for a sweep to find.
func GitHub() Provider {
	return Provider{
		Name: "GitHub", Key: plainKey, Claim: githubClaim,
		Parse: githubEvents,
	}
}

func githubClaim(h http.Header, body []byte) (Claim, error) {
	text, err := one(h, "X-Hub-Signature-256")
	if err != nil {
		return Claim{}, err
	}
	sum, ok := strings.CutPrefix(text, "sha256=")
	s, err := hexSignature("", sum)
	if !ok || err != nil {
		return Claim{}, errBadSignature
	}
	return Claim{Signed: [][]byte{body}, Signatures: []Signature{s}}, nil
}

func githubEvents(m Message) ([]reconcile.Event, error) {
	body, err := githubBody(m)
	if err != nil {
		return nil, err
	}
	name, delivery := m.Header.Get("X-GitHub-Event"), m.Header.Get("X-GitHub-Delivery")
	if name == "" {
		return nil, errors.New("its header names no event")
	}
	if name == "ping" {
		return nil, nil
	}
	e := reconcile.Event{Topic: name, ID: delivery, Dedupe: byID(delivery), Payload: reconcile.Whole, Body: body}
	action := wordAt(body, "action")
	if action != "" {
		e.Topic += "." + action
	}
	object, ok := githubObject(body, name)
	if !ok {
		e.Verdict, e.Why = reconcile.Unknown, "it names no object"
		return []reconcile.Event{e}, nil
	}
	changed := word(wordAt(object, "updated_at"))
	e.Object = reconcile.Object{Type: singular(name), ID: wordAt(object, "id")}
	e.Body, e.Version, e.At = object, versionAt(changed, time.Second), timeOf(changed)
	if action == "deleted" {
		e.Payload, e.Version, e.Deleted = reconcile.Thin, reconcile.Version{}, true
	}
	return []reconcile.Event{e}, nil
}

// githubBody is the JSON of a delivery, which may lie in the field of a form.
func githubBody(m Message) (raw, error) {
	body := raw(m.Body)
	if strings.HasPrefix(m.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		form, err := url.ParseQuery(string(m.Body))
		if err != nil {
			return nil, errors.New("its form cannot be read")
		}
		body = raw(form.Get("payload"))
	}
	if !isObject(body) {
		return nil, errObject
	}
	return body, nil
}

// githubObject finds the object that an event is about: of issues the field issue, of issue_comment the field
// comment.
func githubObject(body raw, event string) (raw, bool) {
	var fields map[string]raw
	if json.Unmarshal(body, &fields) != nil {
		return nil, false
	}
	name := singular(event)
	for {
		if o := fields[name]; isObject(o) {
			return o, true
		}
		var ok bool
		if _, name, ok = strings.Cut(name, "_"); !ok {
			return nil, false
		}
	}
}
