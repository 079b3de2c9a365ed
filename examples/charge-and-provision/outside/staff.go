package outside

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Those who decide about large orders, and what comes between: scanners that open every link, people who press twice, and those
// who have no vote.

// mail is a mail server that sends what has a key once.
func (w *World) mail(r *http.Request, q *request) (any, error) {
	o := w.of(q.For)
	id, fresh := w.once(r, "mail")
	if !fresh {
		return map[string]string{"id": id}, nil
	}
	w.Mails++
	o.mails[q.Subject]++
	if len(o.mails) == 1 { // the first of them
		luck := w.rng.IntN(4)
		w.calls.Go(func() { w.decide(o, q.Link, luck) })
	}
	return map[string]string{"id": id}, nil
}

// decide lets those decide who have a mail with a link.
func (w *World) decide(o *order, link string, luck int) {
	for range 20 { // a scanner
		w.open(http.MethodHead, link, "", nil)
		w.open(http.MethodGet, link, "fiona", nil)
	}
	shown := shownBy(w.open(http.MethodGet, link, "fiona", nil))
	approve := url.Values{"decision": {"approve"}, "shown": {shown}}
	w.votes(o, link, "sam", http.StatusForbidden, approve)
	w.votes(o, link, "fiona", http.StatusConflict, url.Values{"decision": {"approve"}, "shown": {"something else"}})
	switch {
	case o.fate == open:
	case o.fate == rejected:
		w.votes(o, link, "fiona", http.StatusOK, approve)
		w.votes(o, link, "frank", http.StatusOK, url.Values{"decision": {"reject"}, "shown": {shown}, "reason": {"they did not pay the last time"}})
	default:
		w.votes(o, link, "fiona", http.StatusOK, approve)
		if luck == 0 { // she presses again
			w.votes(o, link, "fiona", http.StatusOK, approve)
		}
		w.votes(o, link, "frank", http.StatusOK, approve)
	}
}

var hidden = regexp.MustCompile(`name="shown" value="([0-9a-f]+)"`)

func shownBy(page string) string {
	if found := hidden.FindStringSubmatch(page); found != nil {
		return found[1]
	}
	return ""
}

// votes votes, and notes an answer that should not be. A vote that came too late decides nothing, which is lawful: how quick
// people and machines are is not what is told here.
func (w *World) votes(o *order, link, name string, want int, form url.Values) {
	page, status, tries := w.say(http.MethodPost, link, name, form)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case strings.Contains(page, "its time is over"):
		o.unsure = o.unsure || tries > 1 // an earlier try may have decided it, and its answer was lost
	case status != want:
		w.wrongs = append(w.wrongs, name+" voted, and was answered with "+http.StatusText(status)+", not "+http.StatusText(want)+cmp.Or(page, ": no page"))
	case want == http.StatusOK:
		w.Votes++
		o.voted[name] = true
	default:
		w.Refused++
	}
}

func (w *World) open(method, link, name string, form url.Values) (page string) {
	page, _, _ = w.say(method, link, name, form)
	return page
}

// say does what a browser does, until there is an answer that is one.
func (w *World) say(method, link, name string, form url.Values) (page string, status, tries int) {
	for tries = 1; tries <= 300; tries++ {
		r, err := http.NewRequestWithContext(context.Background(), method, link, strings.NewReader(form.Encode()))
		if err != nil {
			return err.Error(), 0, tries
		}
		if name != "" {
			r.SetBasicAuth(name, Password)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if answer, err := http.DefaultClient.Do(r); err == nil {
			body, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if answer.StatusCode < 500 && err == nil {
				return string(body), answer.StatusCode, tries
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	return "", 0, tries
}
