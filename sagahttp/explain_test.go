package sagahttp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/amends-dev/amends/saga"
	"github.com/amends-dev/amends/sagahttp"
)

// "The destination's words are lost: POST /invoices answered 422 Unprocessable Entity is all
// that log, show and history ever say; the body said amount must be positive". One bounded line of
// it is in the error, and so on record.
func TestWhatTheDestinationSaid(t *testing.T) {
	t.Parallel()
	const plain, asJSON = "text/plain; charset=utf-8", "application/json"
	for _, tc := range []struct{ kind, body, want string }{
		{asJSON, `{"message":"amount must be positive"}`, ": amount must be positive"},
		{asJSON, `{"code":7,"error":{"type":"card_error","message":"no such customer"}}`, ": no such customer"},
		{asJSON, `{"errors":[{"message":"first"},{"message":"second"}]}`, ": first"},
		{asJSON, `{"error":"invalid_grant","error_description":"the token is old"}`, ": the token is old"},
		{asJSON, `{"error":"invalid_grant"}`, ": invalid_grant"},
		{"application/problem+json", `{"title":"Out of credit","detail":"Your balance is 30, that costs 50."}`, ": Your balance is 30, that costs 50."},
		{"application/problem+json", `{"title":"Out of credit"}`, ": Out of credit"},
		{asJSON, `{"Type":"ValidationException","Message":"The TaxType code does not exist","Elements":[{"Contact":{"Name":"Anna"}}]}`, ": The TaxType code does not exist"},
		{asJSON, `{"Fault":{"Error":[{"Message":"Duplicate Document Number","code":"6140"}],"type":"ValidationFault"},"time":"2026"}`, ": Duplicate Document Number"},
		{asJSON, `["no", "more"]`, ": no"},
		{asJSON, `"no"`, ": no"},
		{asJSON, `{"order":{"message":"with love"},"n":1}`, `: {"order":{"message":"with love"},"n":1}`}, // not what is meant for people
		{asJSON, `{"message":{"message":{"message":{"message":{"message":"deep"}}}}}`, `: {"message":{"message":{"message":{"message":{"message":"deep"}}}}}`},
		{asJSON, `[[[[[["deep"]]]]]]`, `: [[[[[["deep"]]]]]]`},
		{asJSON, `{"message":`, `: {"message":`},
		{asJSON, ``, ``},
		{asJSON, `{}`, `: {}`},
		{plain, "\r\n\n  amount must   be\tpositive \r\nand more", ": amount must be positive"},
		{plain, "red \x1b[31malert\x00\u202e", ": red [31malert"},
		{plain, "  \n\t", ""},
		{plain, "a\xffb", ""},
		{"text/html", "<html><title>422</title>", ""},
		{"application/octet-stream", "words", ""},
		{"", "words", ""},
		{"application/json; charset", `{"message":"x"}`, ""},
	} {
		head := "422 X"
		if tc.kind != "" {
			head += "\r\nContent-Type: " + tc.kind
		}
		w := answer(t, head, tc.body)
		_, err := dial(t, w.URL(), nil).Do(t.Context(), post)
		if want := "POST " + post.Path + " answered 422 Unprocessable Entity" + tc.want; err == nil || err.Error() != want {
			t.Errorf("%s %q:\n%v\nwant\n%s", tc.kind, tc.body, err, want)
		}
	}
	for _, long := range []string{strings.Repeat("x", 5000), strings.Repeat("ä", 5000)} {
		w := answer(t, "422 X\r\nContent-Type: text/plain", long)
		_, err := dial(t, w.URL(), nil).Do(t.Context(), post)
		var status *sagahttp.StatusError
		if !errors.As(err, &status) || len(status.Said) > 200 || len(status.Said) < 195 || !strings.HasSuffix(status.Said, "…") || !utf8.ValidString(status.Said) {
			t.Errorf("said %+v", status)
		}
	}
}

// "Redactable by an option of the client".
func TestExplainMayWithhold(t *testing.T) {
	t.Parallel()
	const canary = "canary-7f3a"
	w := answer(t, "422 X\r\nContent-Type: application/json", `{"message":"`+canary+`","code":"E17"}`)
	said := func(opts *sagahttp.Options) string {
		_, err := dial(t, w.URL(), opts).Do(t.Context(), post)
		var status *sagahttp.StatusError
		errors.As(err, &status)
		b, failed := json.Marshal(status)
		if failed != nil {
			t.Error(failed)
		}
		return fmt.Sprintf("%v %#v %s", err, status, b)
	}
	if got := said(&sagahttp.Options{Explain: func(*sagahttp.StatusError) string { return "" }}); strings.Contains(got, canary) || strings.Contains(got, "Entity: ") {
		t.Errorf("withheld: %s", got)
	}
	byCode := func(e *sagahttp.StatusError) string {
		var v struct{ Code string }
		_ = json.Unmarshal(e.Body, &v)
		return "code " + v.Code + "\nand " + canary
	}
	if got := said(&sagahttp.Options{Explain: byCode}); strings.Contains(got, canary) || !strings.Contains(got, "Unprocessable Entity: code E17") {
		t.Errorf("by its code: %s", got)
	}
	if got := said(nil); !strings.Contains(got, canary) {
		t.Errorf("by default: %s", got)
	}
}

// No error shows the client's own credentials, or what Options.Secrets names, also where the destination repeats them.
func TestErrorsShowNoSecret(t *testing.T) {
	t.Parallel()
	header := http.Header{"X-Api-Key": {"zq-apikey-1"}, "Authorization": {"Bearer zq-bearer-2"}, "Version": {"2026-01-01"}}
	authorize := func(r *http.Request) error {
		r.SetBasicAuth("anna", "zq-password-3")
		q := r.URL.Query()
		q.Set("sig", "zq-query/4")
		r.URL.RawQuery = q.Encode()
		return nil
	}
	for name, opts := range map[string]*sagahttp.Options{
		"headers": {Header: header}, "authorize": {Authorize: authorize}, "path": {Secrets: []string{"zq-path-5"}},
		"checked": {Header: header, CheckResponse: func(r *sagahttp.Response) error { return saga.Permanent(errors.New(string(r.Body))) }},
	} {
		echo := `{"message":"no zq-apikey-1, zq-bearer-2, zq-password-3, zq-query%2F4, zq-path-5 in 2026-01-01"}`
		w := answer(t, "422 X\r\nContent-Type: application/json", echo)
		_, err := dial(t, w.URL(), opts).Do(t.Context(), sagahttp.Request{Method: "POST", Path: "/services/zq-path-5", Key: "k1"})
		mine := map[string][]string{"headers": {"apikey", "bearer"}, "checked": {"apikey", "bearer"}, "authorize": {"password", "query"}, "path": {"path"}}
		for _, secret := range mine[name] {
			if text := fmt.Sprintf("%v %#v", err, err); strings.Contains(text, "zq-"+secret) || !strings.Contains(text, "in 2026-01-01") {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
	broken := dial(t, "http://127.0.0.1:1", &sagahttp.Options{Secrets: []string{"zq-path-5"}})
	if _, err := broken.Do(t.Context(), sagahttp.Request{Method: "POST", Path: "/services/zq-path-5"}); err == nil || strings.Contains(err.Error(), "zq-") {
		t.Errorf("not sent: %v", err)
	}
}
