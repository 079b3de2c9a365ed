package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/intake"
	"github.com/amends-dev/amends/internal/reading"
	"github.com/amends-dev/amends/reconcile/inbox"
)

// GitHub returns the provider for GitHub's webhooks, of either content type. The type of an object
// is the event's name in the singular: issue, pull_request, issue_comment. Its version is
// updated_at, in seconds; a deletion does not raise it, so it is a hint, as is every object without
// one. Events without an object of their own, such as push, are stored as unknown.
//
// The signature covers the body and no time; event and delivery id are headers that are not signed.
// So the object is the one that the fields of the body tell (see githubSubjects); where the header
// names another event, it is a hint about that object. An event is the same as another when the
// body is. GitHub repeats nothing by itself: what it could not deliver is for a sweep to find.
func GitHub() Provider {
	return Provider{
		name: "GitHub", headersUnsigned: true, key: plainKey, claim: githubClaim,
		parse: githubEvents,
	}
}

func githubClaim(h http.Header, body []byte) (claim, error) {
	text, err := one(h, "X-Hub-Signature-256")
	if err != nil {
		return claim{}, err
	}
	sum, ok := strings.CutPrefix(text, "sha256=")
	s, err := hexSignature("", sum)
	if !ok || err != nil {
		return claim{}, errBadSignature
	}
	return claim{Signed: [][]byte{body}, Signatures: []signature{s}}, nil
}

func githubEvents(m message) ([]intake.Event, error) {
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
	e := intake.Event{Topic: name, ID: delivery, Dedupe: intake.DigestOf(string(m.Body)), Payload: intake.Whole, Body: body}
	action, err := wordAt(body, "action")
	if err != nil {
		return nil, err
	}
	if action != "" {
		e.Topic += "." + action
	}
	told, object, err := githubSubject(body)
	if err != nil {
		return nil, err
	}
	if told == "" || !slices.ContainsFunc(githubSubjects, func(s githubEvent) bool { return s.event == name }) {
		e.Disposition, e.Why = intake.Unknown, "it names no object"
		return []intake.Event{e}, nil
	}
	read := words{body: object}
	changed := word(read.at("updated_at"))
	e.Object = inbox.Object{Type: singular(told), ID: read.at("id")}
	if read.err != nil {
		return nil, fmt.Errorf("%s: %w", told, read.err)
	}
	e.Body, e.Version, e.At = object, versionAt(changed, time.Second), timeOf(changed)
	if action == "deleted" {
		e.Payload, e.Version, e.Deleted = intake.Thin, inbox.Version{}, true
	}
	if told != name {
		hint(&e, "its header says "+name+", and its body is of "+told)
	}
	return []intake.Event{e}, nil
}

// githubBody is the JSON of a delivery, which may lie in the field of a form.
func githubBody(m message) (raw, error) {
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

// githubEvent is an event by its name, and the fields of its body.
type githubEvent struct {
	event  string
	fields []string
}

// githubSubjects tells events by the fields of their bodies: the first of which a body has all
// fields, the object's own in front. What an event has beside its object is behind it, so that an
// issue's comment is not taken for the issue.
var githubSubjects = []githubEvent{
	{"pull_request_review_comment", []string{"comment", "pull_request"}},
	{"pull_request_review_thread", []string{"thread", "pull_request"}},
	{"pull_request_review", []string{"review", "pull_request"}},
	{"discussion_comment", []string{"comment", "discussion"}},
	{"issue_comment", []string{"comment", "issue"}},
	{"commit_comment", []string{"comment"}},
	{"pull_request", []string{"pull_request"}},
	{"discussion", []string{"discussion"}},
	{"issues", []string{"issue"}},
	{"workflow_job", []string{"workflow_job"}},
	{"deployment_status", []string{"deployment_status", "deployment"}},
	{"deployment", []string{"deployment"}},
	{"check_run", []string{"check_run"}},
	{"check_suite", []string{"check_suite"}},
	{"workflow_run", []string{"workflow_run"}},
	{"release", []string{"release"}},
	{"registry_package", []string{"registry_package"}},
	{"package", []string{"package"}},
	{"milestone", []string{"milestone"}},
	{"label", []string{"label"}},
	{"repository", []string{"repository"}},
}

// githubNames are the fields of all of them, each once.
var githubNames = func() (names []string) {
	for _, s := range githubSubjects {
		names = append(names, s.fields...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}()

// githubSubject returns the event that a body is of, by what is signed, and its object; none for
// those without one.
func githubSubject(body raw) (event string, object raw, err error) {
	values, _, err := reading.Members(body, githubNames...)
	if err != nil {
		return "", nil, err
	}
	value := func(field string) raw { return values[slices.Index(githubNames, field)] }
	for _, s := range githubSubjects {
		if slices.ContainsFunc(s.fields, func(f string) bool { return !begins(value(f), "{") }) {
			continue
		}
		if s.event == "repository" && !githubRepository(body) {
			break
		}
		return s.event, value(s.fields[0]), nil
	}
	return "", nil, nil
}

// githubRepository reports whether a body is about the repository that every body names.
func githubRepository(body raw) bool {
	action, _ := wordAt(body, "action")
	_, others, err := reading.Members(body, "action", "repository", "sender", "organization", "installation", "enterprise", "changes")
	return err == nil && !others && slices.Contains([]string{
		"created", "edited", "renamed", "transferred", "archived", "unarchived", "publicized", "privatized", "deleted",
	}, action)
}
